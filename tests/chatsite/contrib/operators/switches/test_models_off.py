"""A model that is switched off: no request goes to it from any user, and each user
reads what to do.
"""

import json

import pytest
from asgiref.sync import async_to_sync
from channels.db import database_sync_to_async
from django.urls import reverse

from chatsite.contrib.endpoint import keys
from chatsite.contrib.lab.examples import answers
from chatsite.contrib.lab.trials import job, services, store
from chatsite.protocol.errors import CommandError
from chatsite.turns import commands, model_access, runner, spending, titles
from chatsite.turns.models import Turn
from memory import actions
from memory.compaction.compactor import RefusedError
from memory.models import Conversation, Message, ModelCall
from memory.transcript import ActionError
from memory.view.variation import Variation

from ....scenes import HTMX, page_of, submit, url, violations
from ....sockets import Chat
from ...endpoint.asgi_client import Call

pytestmark = pytest.mark.django_db(transaction=True)
SAID = "This model is switched off for now. Choose another one"


@pytest.fixture
def site(settings, upstream):
    """Return a site with two models, of which its own is on."""
    settings.CHAT_MODEL, settings.CHAT_MODELS = "ok", ["ok", "ok-two"]
    settings.SUMMARY_MODEL = ""
    return upstream


@pytest.fixture
def off(site, conversation, switch_off):
    """A conversation of the other model, which is switched off. Nothing is sent."""
    actions.set_model(conversation, "ok-two")
    switch_off("model", "ok-two")
    yield conversation
    assert site.requests == []
    assert violations() == []


def run_turns(conversation):
    async_to_sync(runner._drive_turns)(conversation.pk)


class TestPages:
    def test_page_marks_the_model_and_does_not_offer_it(self, off, client, alice):
        assert model_access.list_models_for(alice.pk) == ["ok"]
        assert 'value="ok-two"' not in client.get("/").text
        assert "ok-two (switched off)" in page_of(client, off)

    def test_model_cannot_be_chosen(self, off, client):
        actions.set_model(off, "")
        answer = client.post(url("model", off), {"model": "ok-two"}, headers=HTMX)
        assert SAID in answer.text
        off.refresh_from_db()
        assert off.model == ""

    @pytest.mark.parametrize("model", ["ok-two", ""])
    def test_a_conversation_is_not_begun(self, off, client, switch_off, model):
        switch_off("model", "ok")
        before = Conversation.objects.count()
        form = {"model": model, "first": "Where is Kyoto?", "client_id": "c1"}
        page = client.post(reverse("conversation-create"), form).text
        assert SAID in page
        assert "Where is Kyoto?" in page
        assert Conversation.objects.count() == before

    def test_a_site_without_any_still_has_its_pages(self, off, client, switch_off):
        switch_off("model", "*")
        assert client.get("/").status_code == 200
        assert page_of(client, off)
        assert client.get("/account/").status_code == 200


class TestReplies:
    async def test_the_socket_says_so_and_stores_nothing(self, off, session):
        async with Chat(off, session) as chat:
            await chat.command(type="send", client_id="c1", text="Hello")
            error = (await chat.until("error"))[-1]
        assert (error["code"], error["client_id"]) == ("model_off", "c1")
        assert SAID in error["detail"]
        assert not await Message.objects.filter(client_id="c1").aexists()

    def test_a_turn_that_waits_fails_and_can_be_tried_again(
        self, site, conversation, switch_off, switch_on, client
    ):
        turn = submit(conversation, "Hello").turn
        row = switch_off("model", "ok")
        run_turns(conversation)
        turn.refresh_from_db()
        assert (turn.state, turn.error) == ("failed", "model_off")
        assert site.requests == []
        assert SAID in page_of(client, conversation)
        with pytest.raises(CommandError) as caught:
            commands.retry_turn(conversation, turn.pk)
        assert caught.value.code == "model_off"
        switch_on(row)
        commands.retry_turn(conversation, turn.pk)
        run_turns(conversation)
        assert Turn.objects.get(pk=turn.pk).state == "done"
        assert violations() == []

    def test_retry_with_another_model_answers(self, site, conversation, switch_off):
        turn = submit(conversation, "Hello").turn
        switch_off("model", "ok")
        run_turns(conversation)
        actions.set_model(conversation, "ok-two")
        commands.retry_turn(conversation, turn.pk)
        run_turns(conversation)
        assert Turn.objects.get(pk=turn.pk).state == "done"
        assert [each.body["model"] for each in site.calls] == ["ok-two"]

    def test_the_demo_model_too(self, conversation, switch_off):
        switch_off("model", "demo")
        with pytest.raises(CommandError):
            submit(conversation, "Hello")


class TestBesideReplies:
    def test_requests_are_refused(self, off, alice):
        async def enter():
            async with spending.hold_place(alice.pk, "ok-two"):
                raise AssertionError

        with pytest.raises(RefusedError) as caught:
            async_to_sync(enter)()
        assert caught.value.code == "model_off"

    def test_summary_is_refused(self, off):
        outcome = async_to_sync(runner._compact_if_due)(off.pk, limit=20)
        assert outcome == "refused"

    def test_title_is_not_requested(self, off, settings):
        settings.TITLES_ENABLED = True
        Conversation.objects.filter(pk=off.pk).update(title_set_by="auto")
        async_to_sync(titles.name_conversation)(off.pk)
        assert not ModelCall.objects.filter(purpose="title").exists()

    def test_trial_is_refused(self, site, conversation, switch_off):
        trial = services.start_trial(conversation, 2, Variation(model="ok-two"))
        switch_off("model", "ok-two")
        with pytest.raises(ActionError):
            services.start_trial(conversation, 2, Variation(model="ok-two"))
        claim = store.claim_trial()
        async_to_sync(job.run_trial)(claim)
        trial.refresh_from_db()
        assert (trial.state, trial.error) == ("failed", "model_off")
        assert site.requests == []

    def test_answers_to_examples_are_refused(self, off, alice):
        with pytest.raises(ActionError):
            answers.start_answers(alice, [object()], "ok-two", "")


class TestClients:
    @pytest.fixture
    def key(self, alice):
        return keys.create_api_key(alice, "llm")[1]

    @pytest.mark.parametrize("mode", ["observe", "bound"])
    @pytest.mark.parametrize(
        "path",
        [
            *("/v1/chat/completions", "/v1/responses", "/v1/messages"),
            "/v1/messages/count_tokens",
        ],
    )
    async def test_each_wire_refuses_it(self, off, key, path, mode):
        messages = [{"role": "user", "content": "Hello"}]
        name = "input" if path.endswith("responses") else "messages"
        body = {"model": "ok-two", "max_tokens": 9, name: messages}
        sent = json.dumps(body).encode()
        call = Call(path, sent, key=key, x_windowpane_mode=mode)
        call = await call.run()
        assert call.status == 403
        assert b"is switched off on this site" in call.answer

    async def test_the_list_leaves_it_out(self, site, key, switch_off):
        await database_sync_to_async(switch_off)("model", "ok-*")
        call = await Call("/v1/models", key=key).run()
        listed = [each["id"] for each in json.loads(call.answer)["data"]]
        assert "ok-two" not in listed
        assert "ok" in listed
