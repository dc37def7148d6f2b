"""Models that are built for the settings."""

import asyncio

import pytest
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI

from chatsite.llm import providers
from chatsite.llm.demo.chat_model import DemoChatModel
from chatsite.llm.errors import LLMError
from chatsite.llm.streaming import fetch_reply

WRONG = [
    *("gateway/v1", "gateway:8000/v1", "127.0.0.1:8000/v1", "//gateway/v1"),
    *("http:/gateway/v1", "http:///v1", "ftp://gateway/v1", "http://[::1/v1"),
    *("http://gateway:99999/v1", "http://gateway:port/v1", "me:s3cret@gateway/v1"),
]


class TestNames:
    def test_default_is_the_demo_model_without_a_provider(self, settings):
        assert providers.default_model() == "demo"
        assert providers.is_demo(providers.default_model())

    @pytest.mark.parametrize(
        ("name", "value"),
        [("OPENAI_API_KEY", "sk-x"), ("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")],
    )
    def test_default_is_a_real_model_with_a_provider(self, settings, name, value):
        setattr(settings, name, value)
        assert providers.default_model() == "gpt-5.4-mini"

    def test_setting_names_the_model(self, settings):
        settings.CHAT_MODEL = "qwen3"
        assert providers.default_model() == "qwen3"
        assert providers.name_model("qwen3") == "qwen3"

    def test_summariser_is_the_chat_model(self, settings):
        assert providers.summary_model("gpt-x") == "gpt-x"

    def test_summariser_can_be_another_model(self, settings):
        settings.SUMMARY_MODEL = "small"
        assert providers.summary_model("gpt-x") == "small"

    def test_demo_conversation_stays_on_the_demo_model(self, settings):
        settings.SUMMARY_MODEL = "small"
        assert providers.summary_model("demo") == "demo"

    def test_demo_model_is_recognised_by_name(self):
        assert providers.name_model("demo") == "Demo model"


class TestBuild:
    def test_factory_builds_the_demo_model(self, settings):
        settings.DEMO_TOKENS_PER_SECOND = 12.5
        model = providers.build("demo")
        assert isinstance(model, DemoChatModel)
        assert model.tokens_per_second == 12.5

    def test_factory_builds_a_model_once(self):
        assert providers.build("demo") is providers.build("demo")

    def test_factory_builds_a_model_per_event_loop(self, settings):
        settings.OPENAI_API_KEY = "sk-x"

        async def build():
            return providers.build("gpt-5.4-mini")

        assert asyncio.run(build()) is not asyncio.run(build())

    def test_client_leaves_retries_and_usage_to_the_site(self, settings):
        settings.OPENAI_API_KEY = "sk-x"
        model = providers.build("gpt-5.4-mini")
        assert isinstance(model, ChatOpenAI)
        assert (model.max_retries, model.stream_usage) == (0, True)

    def test_own_server_needs_no_key(self, settings):
        settings.OPENAI_BASE_URL = "http://127.0.0.1:1/v1"
        assert providers.build("qwen3").openai_api_base == "http://127.0.0.1:1/v1"

    def test_key_is_not_shown(self, settings):
        settings.OPENAI_API_KEY = "sk-SECRET"
        assert "SECRET" not in repr(providers.build("gpt-5.4-mini"))


class TestHost:
    @pytest.mark.parametrize(
        ("address", "host"),
        [
            ("", "api.openai.com"),
            ("http://127.0.0.1:11434/v1", "127.0.0.1"),
            ("HTTPS://Gateway.example/v1", "gateway.example"),
            ("https://me:s%40cret@gateway.example/v1", "gateway.example"),
            ("http://[::1]:8000/v1", "::1"),
            *((wrong, "") for wrong in WRONG),
        ],
    )
    def test_host_is_that_of_a_full_address(self, settings, address, host):
        settings.OPENAI_BASE_URL = address
        assert providers.find_provider_host(providers.find_provider("m")) == host
        shown = {"api.openai.com": "OpenAI"}.get(host, host)
        assert providers.name_provider("some-model") == shown

    @pytest.mark.parametrize("address", WRONG)
    async def test_request_without_a_host_is_not_made(self, settings, address):
        settings.OPENAI_BASE_URL = address
        with pytest.raises(LLMError) as caught:
            await fetch_reply("some-model", [HumanMessage("Hello")])
        assert caught.value.code == "address"
        assert not caught.value.retryable
        assert (await fetch_reply("demo", [HumanMessage("Hello")])).text


class TestCacheOptions:
    def test_cache_options_name_the_conversation_at_openai(self, settings):
        settings.OPENAI_API_KEY = "sk-x"
        options = providers.cache_options("gpt-5.4-mini", "c1")
        assert options == {"prompt_cache_key": "c1"}

    def test_cache_options_are_not_sent_to_other_servers(self, settings):
        settings.OPENAI_BASE_URL = "http://127.0.0.1:1/v1"
        assert providers.cache_options("qwen3", "c1") == {}
        assert providers.cache_options("demo", "c1") == {}


class TestContextWindow:
    def test_window_is_the_one_of_the_setting(self, settings):
        settings.CONTEXT_WINDOW = 5000
        assert providers.context_window("demo") == 5000

    def test_window_is_the_one_that_langchain_knows(self, settings):
        settings.OPENAI_API_KEY = "sk-x"
        assert providers.context_window("gpt-5.4-mini") == 400_000

    def test_window_of_another_server_is_not_guessed_by_name(self, settings):
        settings.OPENAI_BASE_URL = "http://127.0.0.1:1/v1"
        assert providers.context_window("gpt-5.4-mini") == 32_000

    def test_window_of_unknown_models_is_a_guess(self, settings):
        settings.OPENAI_API_KEY = "sk-x"
        assert providers.context_window("nobody-knows-me") == 32_000
        assert providers.context_window("demo") == 32_000
