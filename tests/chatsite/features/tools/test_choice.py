"""Choosing the tools of a conversation on its page."""

import re

import pytest

from chatsite.turns.copying import copies
from memory import transcript
from memory.models import Conversation

from ...scenes import HTMX, memory_url, page_of, signed_in, url

pytestmark = pytest.mark.django_db


def save(client, conversation, *names, **values):
    target = memory_url("set-tools", conversation)
    return client.post(target, {"tool": names, **values}, headers=HTMX)


def dialog(client, conversation):
    return client.get(memory_url("tools", conversation)).content.decode()


def test_tools_are_chosen_in_the_dialog(client, conversation):
    shown = dialog(client, conversation)
    assert 'value="calculate">' in shown
    assert "checked" not in shown
    notice = save(client, conversation, "calculate", "current_time").content.decode()
    assert "calculate, current_time" in notice
    conversation.refresh_from_db()
    assert conversation.tools == ["calculate", "current_time"]
    assert 'value="calculate" checked>' in dialog(client, conversation)


def test_the_page_says_which_are_on(client, conversation):
    assert "tools-on" not in page_of(client, conversation)
    transcript.change_tools(conversation, ["calculate", "remind_me"])
    assert "The model may call: Calculate, Set a reminder" in page_of(
        client, conversation
    )


def test_tools_can_all_be_turned_off(client, conversation):
    transcript.change_tools(conversation, ["calculate"])
    assert "no tools" in save(client, conversation).content.decode()
    conversation.refresh_from_db()
    assert conversation.tools == []


def test_late_results_can_be_answered_at_once(client, conversation):
    notice = save(client, conversation, "remind_me", answers_late="on").content.decode()
    conversation.refresh_from_db()
    assert conversation.answers_late
    assert 'name="answers_late" checked>' in dialog(client, conversation)
    assert 'name="answers_late"' not in notice
    notice = save(client, conversation, "remind_me").content.decode()
    conversation.refresh_from_db()
    assert not conversation.answers_late
    assert 'name="answers_late" value="on"' in notice


def test_choice_is_undone(client, conversation):
    transcript.change_tools(conversation, ["calculate", "gone"])
    notice = save(client, conversation, "remind_me").content.decode()
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', notice))
    target = re.search(r'hx-post="([^"]+)"', notice)[1]
    client.post(target, fields, headers=HTMX)
    conversation.refresh_from_db()
    # What was gone by then can't be turned on again.
    assert conversation.tools == ["calculate"]


def test_a_tool_that_is_away_is_shown_and_stays(client, conversation):
    transcript.change_tools(conversation, ["away_tool"])
    assert "is not available at the moment" in dialog(client, conversation)
    save(client, conversation, "away_tool", "calculate")
    conversation.refresh_from_db()
    assert conversation.tools == ["away_tool", "calculate"]


def test_unknown_tool_can_not_be_turned_on(client, conversation):
    save(client, conversation, "<script>", "calculate", "calculate")
    conversation.refresh_from_db()
    assert conversation.tools == ["calculate"]


def test_strangers_neither_see_nor_choose(bob, conversation):
    stranger = signed_in(bob)
    assert stranger.get(memory_url("tools", conversation)).status_code == 404
    assert save(stranger, conversation, "calculate").status_code == 404
    conversation.refresh_from_db()
    assert conversation.tools == []


def test_new_conversations_begin_with_those_of_the_setting(client, alice, settings):
    settings.DEFAULT_TOOLS = ["calculate", "calculate", "current_time"]
    client.post("/c/", {"title": "New"})
    made = Conversation.objects.get(owner=alice, title="New")
    assert made.tools == ["calculate", "current_time"]


def test_a_branch_has_the_same(conversation):
    transcript.change_tools(conversation, ["calculate"])
    assert copies.branch_conversation(conversation, 2).tools == ["calculate"]


def test_earlier_requests_have_no_tools(client, conversation):
    transcript.change_tools(conversation, ["calculate"])
    shown = client.get(url("context", conversation), {"reply": 2}).content.decode()
    assert "tools-on" not in shown


class TestBeginning:
    """The tools that a conversation begins with, chosen on the home page."""

    def begin(self, client, **fields):
        client.post("/c/", {"first": "Hello", **fields}, headers=HTMX)
        return Conversation.objects.get().tools

    def test_the_home_page_offers_those_of_the_site(self, client, settings):
        settings.DEFAULT_TOOLS = ["calculate"]
        page = client.get("/").content.decode()
        boxes = re.findall(r'<input[^>]*type="checkbox"[^>]*name="tools"[^>]*>', page)
        assert len(boxes) == 6
        assert [box for box in boxes if "checked" in box] == [
            box for box in boxes if 'value="calculate"' in box
        ]

    def test_tools_are_chosen_before_the_first_message(self, client, settings):
        settings.DEFAULT_TOOLS = ["calculate"]
        assert self.begin(client, tools=["", "current_time"]) == ["current_time"]

    def test_empty_choice_is_a_choice(self, client, settings):
        settings.DEFAULT_TOOLS = ["calculate"]
        assert self.begin(client, tools=[""]) == []

    def test_conversation_without_a_choice_has_the_tools_of_the_site(
        self, client, settings
    ):
        settings.DEFAULT_TOOLS = ["calculate"]
        assert self.begin(client) == ["calculate"]

    def test_an_unknown_one_is_refused(self, client):
        answer = client.post("/c/", {"first": "Hello", "tools": "evil"}, headers=HTMX)
        assert "Tools: Select a valid choice" in answer.content.decode()
        assert not Conversation.objects.exists()
