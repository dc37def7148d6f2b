"""Model and temperature of a conversation, and who is named on its replies."""

import re

import pytest
from django.db.models import QuerySet

from chatsite.live import fragments
from chatsite.llm import providers
from chatsite.turns import attempt, commands, lifecycle
from chatsite.turns.copying import copies
from memory import actions, context
from memory.models import ModelCall

from ..scenes import HTMX, memory_url, page_of, signed_in, submit, url, violations


@pytest.fixture(autouse=True)
def models(settings):
    settings.CHAT_MODELS = ["other-model"]


def choose(client, conversation, name):
    answer = client.post(url("model", conversation), {"model": name}, headers=HTMX)
    conversation.refresh_from_db()
    return answer.content.decode()


def reply_by(conversation, model, text):
    """Answer what waits with this model."""
    claim = lifecycle.claim(conversation.pk)
    built = context.build_request_context(conversation, model=model)
    claim = lifecycle.begin(claim, built, model)
    lifecycle.finish(claim, lifecycle.TurnResult("done", text))


class TestModel:
    def test_model_of_a_conversation_is_changed_and_undone(self, client, conversation):
        notice = choose(client, conversation, "other-model")
        assert "other-model writes the replies from now on." in notice
        assert conversation.model == "other-model"
        choose(client, conversation, re.search(r'name="model" value="(.+)"', notice)[1])
        assert conversation.model == ""

    def test_every_tab_is_told(self, client, conversation):
        choose(client, conversation, "other-model")
        synced = "".join(fragments.LivePage().sync(conversation))
        assert 'data-model="other-model"' in synced

    def test_unknown_model_is_refused(self, client, conversation):
        assert 'role="alert"' in choose(client, conversation, "evil")
        assert conversation.model == ""

    def test_model_no_longer_offered_stays_in_the_list(
        self, client, conversation, settings
    ):
        choose(client, conversation, "other-model")
        settings.CHAT_MODELS = []
        page = " ".join(page_of(client, conversation).split())
        assert '<option value="other-model" selected>' in page

    def test_a_stranger_gets_the_404_of_a_missing_one(self, conversation, bob):
        other = signed_in(bob).post(url("model", conversation), {"model": "demo"})
        assert other.status_code == 404


class TestNames:
    @pytest.mark.parametrize(
        ("base_url", "name", "shown"),
        [
            ("", "", "OpenAI"),
            ("https://api.openai.com/v1", "", "OpenAI"),
            ("http://vllm.internal:8000/v1", "", "vllm.internal"),
            ("http://vllm.internal:8000/v1", "The library", "The library"),
        ],
    )
    def test_a_provider_has_one(self, settings, base_url, name, shown):
        settings.OPENAI_BASE_URL, settings.PROVIDER_NAME = base_url, name
        assert providers.name_provider("some-model") == shown
        assert providers.name_provider("demo") == ""

    def test_each_version_of_a_reply_names_its_own_model(
        self, client, conversation, settings
    ):
        settings.PROVIDER_NAME = "The library"
        submit(conversation, "Who are you?")
        reply_by(conversation, "first-model", "One.")
        settings.PROVIDER_NAME = "Elsewhere"
        commands.regenerate_reply(conversation, conversation.turns.last().pk)
        reply_by(conversation, "second-model", "Two.")
        page = " ".join(page_of(client, conversation).split())
        names = re.findall(
            r'who">(\w+-model)</span>.*?"provider">([\w ]+)</span>', page
        )
        assert names == [
            ("first-model", "The library"),
            ("second-model", "Elsewhere"),
        ]
        assert violations() == []

    def test_the_provider_is_signed(self, conversation):
        submit(conversation, "Who are you?")
        reply_by(conversation, "some-model", "Me.")
        assert violations() == []
        rows = QuerySet(ModelCall).filter(provider="OpenAI")
        assert rows.update(provider="Another") == 1
        assert any("signature" in found for found in violations())


class TestTemperature:
    def save(self, client, conversation, **values):
        target = memory_url("set-system-prompt", conversation)
        answer = client.post(target, {"text": "", **values}, headers=HTMX)
        conversation.refresh_from_db()
        return answer.content.decode()

    @pytest.mark.parametrize(
        ("own", "sent"), [("", 1.0), ("0", 0.0), ("0.7", 0.7), ("2", 2.0)]
    )
    def test_temperature_is_sent_with_each_request(
        self, client, conversation, settings, own, sent
    ):
        settings.CHAT_TEMPERATURE = 1.0
        actions.set_model(conversation, "other-model")
        assert 'role="alert"' not in self.save(client, conversation, temperature=own)
        submit(conversation)
        request = attempt.prepare_attempt(lifecycle.claim(conversation.pk))
        assert request.built.options["temperature"] == sent

    @pytest.mark.parametrize("wrong", ["2.1", "-1", "warm", "nan"])
    def test_a_wrong_one_is_named_and_nothing_is_saved(
        self, client, conversation, wrong
    ):
        target = memory_url("set-system-prompt", conversation)
        values = {"text": "Like a pirate.", "temperature": wrong}
        answer = client.post(target, values, headers=HTMX).content.decode()
        assert "Temperature:" in answer
        conversation.refresh_from_db()
        assert (conversation.system_prompt, conversation.temperature) == ("", None)

    def test_untouched_temperature_stays_as_stored(self, client, conversation):
        opened = {"temperature": "", "seen_temperature": ""}
        actions.set_temperature(conversation, 0.5)
        self.save(client, conversation, **opened)
        assert conversation.temperature == 0.5
        self.save(client, conversation, **{**opened, "temperature": "0.9"})
        assert conversation.temperature == 0.9

    def test_temperature_change_is_undone(self, client, conversation):
        notice = self.save(client, conversation, temperature="0.5")
        assert conversation.temperature == 0.5
        fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', notice))
        self.save(client, conversation, **fields)
        assert conversation.temperature is None

    def test_branches_have_it(self, conversation):
        actions.set_temperature(conversation, 0.5)
        assert copies.branch_conversation(conversation, 2).temperature == 0.5
