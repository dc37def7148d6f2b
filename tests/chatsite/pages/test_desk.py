"""The desk: parts of the next request that are switched off, sent, kept and undone."""

import json

import pytest
from asgiref.sync import async_to_sync
from django.db.models import QuerySet
from django.urls import reverse

from chatsite.turns import requests, runner, variations
from memory import actions, transcript
from memory.models import Conversation
from memory.view import rebuilding
from memory.view.variation import KEY_CHARS, MOST_OFF, Variation, list_keys
from tests.memory.scenes import summarise

from ..scenes import HTMX, submit, talk_in_turns, violations

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def chat(conversation, settings):
    """Six messages, of which a summary covers two."""
    settings.DEMO_TOKENS_PER_SECOND = 0
    summarise(conversation, 1, 2, text="Lance was greeted.")
    talk_in_turns(conversation, "And the hotel?")
    return Conversation.objects.get(pk=conversation.pk)


def switch(client, chat, part, on="", **form):
    address = reverse("memory-switch", args=[chat.uuid])
    values = {"part": part, "on": on, **form}
    return client.post(address, values, headers=HTMX)


def say(chat, text):
    turn = submit(chat, text).turn
    async_to_sync(runner._drive_turns)(chat.pk)
    chat.refresh_from_db()
    return chat.model_calls.filter(message__turn=turn).latest("pk")


def texts_of(built):
    return json.dumps(built.wire)


class TestSwitch:
    def test_every_part_is_switched_off_and_on_again(self, client, chat):
        usual = requests.next_turn(chat)
        keys = list_keys(usual.refs)
        assert {"system", "summaries", "window", "summary-1", "message-3"} <= keys
        for key in keys:
            switch(client, chat, key)
            chat.refresh_from_db()
            built = requests.next_turn(chat)
            assert built.sha256 != usual.sha256, key
            assert built.tokens < usual.tokens, key
            assert built.usual.tokens == usual.tokens
            assert sum(count for _, count in built.parts) == built.tokens
            switch(client, chat, key, on="1")
            chat.refresh_from_db()
            assert requests.next_turn(chat).sha256 == usual.sha256, key
        assert chat.next_request == {}

    def test_pane_shows_what_the_next_message_sends(self, client, chat):
        pane = switch(client, chat, "summary-1").content.decode()
        assert "1 change" in pane
        assert 'aria-checked="false"' in pane
        chat.refresh_from_db()
        shown = requests.next_turn(chat, draft="One more")
        call = say(chat, "One more")
        assert "greeted" not in texts_of(shown)
        assert [m["content"] for m in shown.wire] == [
            m["content"] for m in rebuilding.rebuild_context(call).wire
        ]
        assert rebuilding.verify_context(call)
        assert chat.model_calls.latest("pk").refs["trial"] == {"off": ["summary-1"]}
        page = client.get(
            reverse("conversation-context", args=[chat.uuid]),
            {"reply": call.message.seq},
        )
        assert "without summary v1" in page.content.decode()
        assert "greeted" in texts_of(requests.next_turn(chat))
        assert violations() == []

    def test_tools_are_left_out_with_their_tokens(self, client, chat):
        transcript.change_tools(chat, ["calculate"], answers_late=False)
        with_tools = requests.next_turn(chat)
        switch(client, chat, "tools")
        chat.refresh_from_db()
        built = requests.next_turn(chat)
        assert with_tools.tools
        assert not built.tools
        assert "tools" not in dict(built.parts)
        body = client.get(reverse("conversation-context-json", args=[chat.uuid])).json()
        assert not body["tools"]
        assert sum(part["tokens"] for part in body["parts"]) == built.tokens

    def test_message_is_left_out_with_its_group(self, client, chat):
        transcript.change_tools(chat, ["calculate"], answers_late=False)
        say(chat, 'use calculate {"expression": "1+1"}')
        call = chat.messages.exclude(tool_calls=[]).get()
        switch(client, chat, f"message-{call.seq}")
        chat.refresh_from_db()
        built = requests.next_turn(chat)
        assert not any(each.get("tool_calls") for each in built.wire)
        assert not any(each["role"] == "tool" for each in built.wire)

    @pytest.mark.parametrize(
        "key",
        [
            *(
                "",
                "no-part",
                "message-",
                "message-x",
                "message-0",
                "message-٣",
                "newest",
            ),
            *(
                "message-9999999999",
                "summary-1x",
                "rule-" + "a" * 40,
                "rule-Ä",
                "steps",
            ),
        ],
    )
    def test_unknown_part_is_refused_in_a_sentence(self, client, chat, key):
        answer = client.post(reverse("memory-switch", args=[chat.uuid]), {"part": key})
        assert (answer.status_code, b"no such part" in answer.content) == (409, True)
        chat.refresh_from_db()
        assert chat.next_request == {}

    def test_parts_that_are_off_are_bounded(self, client, chat):
        off = tuple(f"message-{n}" for n in range(1_000, 1_000 + MOST_OFF))
        variations.switch_off(chat, off)
        answer = client.post(
            reverse("memory-switch", args=[chat.uuid]), {"part": "summaries"}
        )
        assert b"200 parts are off" in answer.content
        assert len(json.dumps(chat.next_request)) < MOST_OFF * (KEY_CHARS + 4)

    def test_switches_refuse_other_users(self, client, chat, bob):
        client.force_login(bob)
        assert switch(client, chat, "summaries").status_code == 404
        chat.refresh_from_db()
        assert chat.next_request == {}

    def test_draft_stays_in_the_pane(self, client, chat):
        pane = switch(client, chat, "summaries", draft="Is it far?").content.decode()
        assert "Is it far?" in pane


class TestKeep:
    def test_kept_switches_stay_until_they_are_undone(self, client, chat):
        switch(client, chat, "summaries")
        client.post(reverse("memory-switches-keep", args=[chat.uuid]), headers=HTMX)
        chat.refresh_from_db()
        for text in ("One", "Two"):
            assert say(chat, text).refs["summaries"] == []
        client.post(reverse("memory-switches-undo", args=[chat.uuid]), headers=HTMX)
        chat.refresh_from_db()
        assert say(chat, "Three").refs["summaries"] != []
        assert violations() == []

    def test_switches_of_one_message_are_gone_after_it(self, client, chat):
        switch(client, chat, "summaries")
        chat.refresh_from_db()
        assert say(chat, "One").refs["summaries"] == []
        assert say(chat, "Two").refs["summaries"] != []

    def test_kept_message_is_hidden_for_good(self, client, chat):
        switch(client, chat, "message-4")
        switch(client, chat, "system")
        client.post(reverse("memory-switches-keep", args=[chat.uuid]), headers=HTMX)
        chat.refresh_from_db()
        assert chat.messages.get(seq=4).excluded_at
        assert variations.find_off(chat) == ("system",)
        assert chat.changes.filter(action="leave-out", seq=4).exists()

    def test_message_that_cannot_be_hidden_stays_off(self, client, chat):
        variations.switch_off(chat, ("message-4", "message-999"))
        client.post(reverse("memory-switches-keep", args=[chat.uuid]), headers=HTMX)
        chat.refresh_from_db()
        assert variations.find_off(chat) == ("message-999",)
        assert variations.is_kept(chat)

    def test_deleted_message_takes_no_kept_switch_with_it(self, chat):
        variations.switch_off(chat, ("summaries",), stays=True)
        actions.delete_message(chat, 4)
        chat.refresh_from_db()
        assert variations.find_off(chat) == ("summaries",)
        variations.set_next(chat, Variation(edited=3, text="A secret"), stays=True)
        actions.delete_message(chat, 3)
        chat.refresh_from_db()
        assert "secret" not in json.dumps(chat.next_request)

    def test_page_reports_a_desk_without_changes(self, client, chat):
        answer = client.post(reverse("memory-switches-keep", args=[chat.uuid]))
        assert (answer.status_code, b"Nothing is" in answer.content) == (409, True)


class TestAcrossParts:
    def test_rules_and_facts_have_switches_of_their_own(self, client, alice):
        chat = transcript.create_conversation(alice)
        talk_in_turns(chat, "Always answer in one short sentence.")
        rule = chat.rules.get()
        client.post(
            reverse("memory-rule", args=[chat.uuid, rule.pk, "keep"]), headers=HTMX
        )
        chat.refresh_from_db()
        [key] = [k for k in list_keys(requests.next_turn(chat).refs) if "rule-" in k]
        pane = switch(client, chat, key).content.decode()
        chat.refresh_from_db()
        built = requests.next_turn(chat)
        assert built.context.get_section("rules") == ()
        assert f'data-switch="{key}" aria-checked="false"' in pane
        assert "without one rule" not in pane
        call = say(chat, "Hello")
        assert rebuilding.verify_context(call)


@pytest.mark.parametrize(
    "said", [5, "off", [], {"off": 3}, {"off": [3, "x", "tools"]}, {"off": {"a": 1}}]
)
def test_imported_request_may_say_anything_of_its_changes(client, chat, said):
    call = chat.model_calls.filter(purpose="reply").latest("pk")
    QuerySet(type(call)).filter(pk=call.pk).update(refs=call.refs | {"trial": said})
    address = reverse("conversation-context", args=[chat.uuid])
    assert client.get(address, {"reply": 6}).status_code == 200
