"""Additions of the file of providers to requests, seen where they arrive."""

import pytest
from langchain_core.messages import HumanMessage

from chatsite.llm import providers
from chatsite.llm.provider_file import ModelProvider
from chatsite.llm.streaming import ReplyStream, fetch_reply
from chatsite.ops import error_page

MESSAGES = [HumanMessage("hi!")]
ALL = {"reasoning_effort": "low", "service_tier": "flex", "top_p": 0.5, "seed": 7}


@pytest.fixture
def provide(settings, upstream):
    """provide(**values) -> a provider with these values is the only one."""

    def provide(models=({"name": "ok"},), **values):
        given = {"name": "Ours", "base_url": upstream.url, "key": "sk-hunter2"}
        made = ModelProvider.model_validate(given | values | {"models": [*models]})
        settings.PROVIDERS = (made,)
        providers.build.cache_clear()

    return provide


async def ask(name="ok"):
    bind = providers.sampling_options(name, 0.7)
    return "".join([piece async for piece in ReplyStream(name, MESSAGES, bind=bind)])


async def test_options_of_a_provider_are_sent_with_replies_and_summaries(
    provide, upstream
):
    provide(options=ALL)
    assert await ask() == "Reply to: hi!"
    await fetch_reply("ok", MESSAGES)
    for sent in upstream.calls:
        assert {name: sent.body.get(name) for name in ALL} == ALL
    assert upstream.calls[0].body["temperature"] == 0.7


async def test_options_of_a_model_are_before_those_of_its_provider(provide, upstream):
    own = {"name": "other", "options": {"seed": 9, "reasoning_effort": "none"}}
    provide([{"name": "ok"}, own], options={"seed": 7, "top_p": 1})
    await ask("ok")
    await ask("other")
    first, second = (
        {name: each.body[name] for name in ALL if name in each.body}
        for each in upstream.calls
    )
    assert first == {"seed": 7, "top_p": 1}
    assert second == {"seed": 9, "top_p": 1, "reasoning_effort": "none"}


async def test_options_that_are_not_set_are_not_sent(provide, upstream):
    provide()
    await ask()
    assert not ALL.keys() & upstream.calls[0].body.keys()


async def test_option_that_a_server_refuses_is_left_out_afterwards(provide, upstream):
    provide([{"name": "strict:seed"}], options={"seed": 7, "top_p": 0.5})
    for _ in range(2):
        assert await ask("strict:seed") == "Reply to: hi!"
    assert ["seed" in each.body for each in upstream.calls] == [True, False, False]
    assert all(each.body["top_p"] == 0.5 for each in upstream.calls)


async def test_headers_of_a_provider_are_sent(provide, upstream):
    provide(headers={"X-Team": "search"})
    await ask()
    sent = upstream.calls[0].headers
    assert (sent["x-team"], sent["authorization"]) == ("search", "Bearer sk-hunter2")
    assert "search" not in repr(providers.find_provider("ok"))
    assert "search" in error_page.list_secrets()


async def test_azure_gets_its_version_and_its_key(provide, upstream):
    provide(base_url=f"{upstream.url}/deployments/small", api_version="2024-10-21")
    assert await ask() == "Reply to: hi!"
    (sent,) = upstream.calls
    path, _, query = sent.path.partition("?")
    assert path == "/v1/deployments/small/chat/completions"
    assert (query, sent.headers["api-key"]) == ("api-version=2024-10-21", "sk-hunter2")
