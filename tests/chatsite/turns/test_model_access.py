"""The access check for models, with two providers, one of them for a group.

Each way to a model is tried by a user who is not in the group.
"""

import importlib
import json

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import Group

from chatsite.contrib.endpoint import keys
from chatsite.contrib.lab.examples import answers
from chatsite.contrib.lab.trials import job, services, store
from chatsite.llm import providers
from chatsite.llm.provider_file import read_provider_file
from chatsite.ops import settings_page
from chatsite.protocol.errors import CommandError
from chatsite.turns import commands, model_access, runner, spending, titles
from chatsite.turns.copying import copies
from chatsite.turns.models import Turn
from memory import actions, transcript
from memory.compaction.compactor import RefusedError
from memory.models import Conversation, Message, ModelCall
from memory.transcript import ActionError
from memory.view.variation import Variation
from tests.fakes.upstream import Upstream

from ..contrib.endpoint.asgi_client import Call
from ..scenes import HTMX, page_of, signed_in, submit, url, violations
from ..sockets import Chat

pytestmark = pytest.mark.django_db(transaction=True)
FILE = """
[[providers]]
name = "For all"
base_url = "{}"
key_env = "KEY_OF_ONE"
  [[providers.models]]
  name = "ok"

[[providers]]
name = "For lawyers"
base_url = "{}"
key = "sk-of-the-other"
  [[providers.models]]
  name = "ok-law"
  window = 64_000
  groups = ["lawyers", "judges"]
"""


@pytest.fixture
def both(settings, tmp_path, monkeypatch):
    """The servers of two providers: the second is for lawyers."""
    importlib.import_module("langchain_openai")
    monkeypatch.setenv("KEY_OF_ONE", "sk-of-one")
    with Upstream() as one, Upstream() as other:
        path = tmp_path / "providers.toml"
        path.write_text(FILE.format(one.url, other.url))
        names = {"CHAT_MODEL": "", "SUMMARY_MODEL": ""}
        settings.PROVIDERS, problems = read_provider_file(str(path), names)
        assert problems == []
        yield one, other


@pytest.fixture
def lawyers(db):
    return Group.objects.create(name="lawyers")


@pytest.fixture
def closed(both, conversation):
    """A conversation of a model that its owner may not use any more."""
    Conversation.objects.filter(pk=conversation.pk).update(model="ok-law")
    conversation.refresh_from_db()
    yield conversation
    assert both[1].requests == []
    assert violations() == []


def run_turns(conversation):
    async_to_sync(runner._drive_turns)(conversation.pk)


def read_turn(turn):
    return Turn.objects.get(pk=turn.pk)


def test_two_providers_answer_at_once(both, alice, lawyers):
    one, other = both
    alice.groups.add(lawyers)
    made = [transcript.create_conversation(alice, model=n) for n in ("", "ok-law")]
    for each in made:
        submit(each, "Hello")
        run_turns(each)
    assert one.calls[0].headers["authorization"] == "Bearer sk-of-one"
    assert other.calls[0].headers["authorization"] == "Bearer sk-of-the-other"
    assert other.calls[0].body["model"] == "ok-law"
    calls = ModelCall.objects.filter(purpose="reply").order_by("pk")
    named = [("ok", "For all"), ("ok-law", "For lawyers")]
    assert list(calls.values_list("model", "provider")) == named
    assert violations() == []


class TestMenus:
    def test_menus_list_the_models_that_the_user_may_use(self, both, alice, lawyers):
        assert model_access.list_models_for(alice.pk) == ["ok"]
        alice.groups.add(lawyers)
        assert model_access.list_models_for(alice.pk) == ["ok", "ok-law"]

    def test_the_pages_do_not_name_others(self, both, alice, bob, lawyers):
        made = transcript.create_conversation(alice)
        for path in ("/", "/account/", url("detail", made)):
            assert "ok-law" not in signed_in(alice).get(path).text
        bob.groups.add(lawyers)
        assert 'value="ok-law"' in signed_in(bob).get("/").text

    def test_lost_model_is_marked(self, closed, client):
        assert "ok-law (not available)" in page_of(client, closed)

    def test_model_of_another_group_cannot_be_chosen(self, both, conversation, client):
        answer = client.post(
            url("model", conversation), {"model": "ok-law"}, headers=HTMX
        )
        assert "does not offer that model" in answer.text
        conversation.refresh_from_db()
        assert conversation.model == ""

    def test_a_new_conversation_begins_with_the_sites(self, both, client):
        client.post("/c/", {"model": "ok-law", "title": "Mine"})
        assert not Conversation.objects.filter(model="ok-law").exists()


class TestReplies:
    async def test_the_socket_refuses_and_stores_nothing(self, closed, session):
        async with Chat(closed, session) as chat:
            await chat.command(type="send", client_id="c1", text="Hello")
            error = (await chat.until("error"))[-1]
        assert (error["code"], error["client_id"]) == ("model_denied", "c1")
        assert "Choose another one" in error["detail"]
        assert not await Message.objects.filter(client_id="c1").aexists()

    @pytest.mark.parametrize("again", [commands.regenerate_reply, commands.retry_turn])
    def test_retry_and_regenerate_are_refused(self, closed, again):
        turn = closed.turns.last()
        if again is commands.retry_turn:
            Turn.objects.filter(pk=turn.pk).update(state="failed", error="timeout")
        with pytest.raises(CommandError) as caught:
            again(closed, turn.pk)
        assert caught.value.code == "model_denied"

    def test_an_edit_leaves_the_message(self, closed):
        with pytest.raises(CommandError):
            commands.edit_message(closed, seq=1, text="Other", client_id="c2")
        assert closed.messages.get(seq=1).superseded_at is None

    def test_a_turn_that_waits_is_not_sent(self, both, conversation):
        turn = submit(conversation, "Hello").turn
        Conversation.objects.filter(pk=conversation.pk).update(model="ok-law")
        run_turns(conversation)
        assert (read_turn(turn).state, read_turn(turn).error) == (
            "failed",
            "model_denied",
        )
        assert both[1].requests == both[0].requests == []

    def test_a_branch_is_no_way_around(self, closed):
        branch = copies.branch_conversation(closed, 2)
        with pytest.raises(CommandError):
            submit(branch, "Hello")

    def test_a_model_that_left_the_file_goes_nowhere(self, both, conversation):
        actions.set_model(conversation, "gone")
        with pytest.raises(CommandError):
            submit(conversation, "Hello")
        assert not model_access.may_use(conversation.owner_id, "gone")


class TestBesideReplies:
    def test_rate_limit_refuses_the_request(self, both, alice):
        async def enter():
            async with spending.hold_place(alice.pk, "ok-law"):
                raise AssertionError

        with pytest.raises(RefusedError) as caught:
            async_to_sync(enter)()
        assert (caught.value.code, caught.value.retry_after) == ("model_denied", 600)

    def test_summary_is_refused(self, closed):
        outcome = async_to_sync(runner._compact_if_due)(closed.pk, limit=20)
        assert outcome == "refused"

    def test_title_is_not_requested(self, closed, settings):
        settings.TITLES_ENABLED = True
        Conversation.objects.filter(pk=closed.pk).update(title_set_by="auto")
        async_to_sync(titles.name_conversation)(closed.pk)
        assert not ModelCall.objects.filter(purpose="title").exists()

    def test_trial_is_refused(self, both, conversation):
        with pytest.raises(ActionError):
            services.start_trial(conversation, 2, Variation(model="ok-law"))

    def test_trial_that_was_started_before_fails(
        self, both, conversation, alice, lawyers
    ):
        alice.groups.add(lawyers)
        trial = services.start_trial(conversation, 2, Variation(model="ok-law"))
        alice.groups.clear()
        claim = store.claim_trial()
        async_to_sync(job.run_trial)(claim)
        trial.refresh_from_db()
        assert (trial.state, trial.error) == ("failed", "model_denied")
        assert both[1].requests == []

    def test_answers_to_examples_are_refused(self, both, alice):
        with pytest.raises(ActionError):
            answers.start_answers(alice, [object()], "ok-law", "")


class TestClients:
    @pytest.fixture
    def key(self, alice):
        return keys.create_api_key(alice, "llm")[1]

    async def ask(self, key, model, path="/v1/chat/completions", **body):
        said = {"messages": [{"role": "user", "content": "Hello"}], "input": "Hello"}
        value = {"model": model, **said, **body}
        if path.endswith("completions"):
            value.pop("input")
        else:
            value.pop("messages")
        return await Call(path, json.dumps(value).encode(), key=key).run()

    async def test_each_model_goes_to_its_provider(self, both, key, alice, lawyers):
        await sync_to_async(alice.groups.add)(lawyers)
        for name in ("ok", "ok-law"):
            assert (await self.ask(key, name)).status == 200
        one, other = both
        assert [each.body["model"] for each in one.calls] == ["ok"]
        assert other.calls[0].headers["authorization"] == "Bearer sk-of-the-other"

    @pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
    @pytest.mark.parametrize("model", ["ok-law", "gpt-unknown", "demo", ""])
    async def test_other_models_are_refused(self, both, key, path, model):
        call = await self.ask(key, model, path)
        assert call.status in (400, 403)
        assert both[0].requests == both[1].requests == []

    async def test_list_has_the_models_of_the_user(self, both, key):
        call = await Call("/v1/models", key=key).run()
        [listed] = json.loads(call.answer)["data"]
        assert (listed["id"], listed["owned_by"]) == ("ok", "For all")
        assert both[0].requests == []


def test_the_page_of_settings_lists_them_without_a_key(both, staff, settings):
    rows = [(r.model, r.key, r.groups) for r in settings_page.list_model_rows()]
    assert rows == [("ok", "set", "everyone"), ("ok-law", "set", "lawyers, judges")]
    page = signed_in(staff).get("/admin/settings/").text
    assert "For lawyers" in page
    assert "sk-of" not in page


def test_the_short_form_lets_everyone_use_what_it_has(settings, alice):
    settings.OPENAI_API_KEY, settings.CHAT_MODELS = "sk-x", ["other"]
    with_no_statement = model_access.list_models_for(alice.pk)
    assert with_no_statement == [providers.default_model(), "other"]
    assert model_access.may_use(alice.pk, "of-an-earlier-setting")
