"""The hashes by which a page knows that its right pane is up to date."""

import re

import pytest

from chatsite.live import fragments
from chatsite.turns import variations
from memory import actions, transcript
from memory.models import Change, Conversation

from ..scenes import HTMX, answer, memory_url, page_of, submit

NEWEST = re.compile(r'data-newest="(\w+)"')
STATE = re.compile(r'ws-connect="/ws/c/[0-9a-f-]{36}/[?](\w+)"')


def open_live_page(client, conversation):
    """Return the live page of a socket whose page is opened now."""
    [state] = STATE.findall(page_of(client, conversation))
    return fragments.LivePage(state)


def loads_pane(page, conversation):
    stored = Conversation.objects.get(pk=conversation.pk)
    return 'id="refresh"' in "".join(page.sync(stored))


def record_change(conversation):
    # As of a rule or a fact, which have rows of their own.
    conversation.changes.create(action=Change.Action.LEAVE_OUT)


CHANGES = {
    "message": submit,
    "pin": lambda conversation: actions.pin_message(conversation, 1),
    "switch": lambda conversation: variations.switch_off(conversation, ("message-1",)),
    "model": lambda conversation: actions.set_model(conversation, "another"),
    "title": lambda made: transcript.rename_conversation(made, "Another title"),
    "recorded change": record_change,
}


def test_first_sync_of_an_unchanged_page_leaves_the_pane(client, conversation):
    page = open_live_page(client, conversation)
    assert not loads_pane(page, conversation)
    # Later ones follow a change, or an absence.
    assert loads_pane(page, conversation)
    assert loads_pane(fragments.LivePage(), conversation)


@pytest.mark.parametrize("name", CHANGES)
def test_first_sync_after_a_change_loads_the_pane(client, conversation, name):
    page = open_live_page(client, conversation)
    CHANGES[name](conversation)
    assert loads_pane(page, conversation)


def test_first_sync_after_the_end_of_a_turn_loads_the_pane(client, conversation):
    submit(conversation)
    page = open_live_page(client, conversation)
    answer(conversation, "")
    assert loads_pane(page, conversation)


def draft_of(client, conversation, **values):
    """Return the hash of the right pane with a draft, "" without one."""
    address = memory_url("draft", conversation)
    shown = client.post(address, values, headers=HTMX).content.decode()
    return "".join(NEWEST.findall(shown))


def begun(conversation, text):
    """Return the hash that comes with a sent message, whose turn begins."""
    turn = submit(conversation, text).turn
    drawn = fragments.LivePage().draw_turn(conversation.pk, turn.pk, "")
    return "".join(NEWEST.findall(drawn))


class TestDraft:
    def test_message_that_begins_has_the_hash_of_its_draft(self, client, conversation):
        shown = draft_of(client, conversation, draft="It's <two>\nlines. ")
        assert begun(conversation, "It's <two>\nlines. ") == shown != ""
        # Its draft is of no later message, and of none that waits behind it.
        answer(conversation)
        assert draft_of(client, conversation, draft="It's <two>\nlines. ") != shown
        assert begun(conversation, "Next")
        assert not begun(conversation, "Behind it")

    def test_pane_without_its_words_has_another_hash(self, client, conversation):
        shown = draft_of(client, conversation, draft="Hello there")
        assert "" != begun(conversation, "Hello") != shown
        assert draft_of(client, conversation, draft="") == ""

    def test_turn_that_has_gone_on_is_loaded(self, conversation):
        turn = submit(conversation).turn
        answer(conversation)
        drawn = fragments.LivePage().draw_turn(conversation.pk, turn.pk, "")
        assert 'id="refresh"' in drawn
        assert not NEWEST.search(drawn)

    def test_turn_that_is_drawn_again_is_loaded(self, conversation):
        turn, live = submit(conversation).turn, fragments.LivePage()
        first, again = (live.draw_turn(conversation.pk, turn.pk, "") for _ in range(2))
        assert NEWEST.search(first)
        # Its second request may be another one, such as without its tools.
        assert 'id="refresh"' in again
        assert not NEWEST.search(again)

    @pytest.mark.parametrize("text", ["Always answer in French.", "Hello"])
    def test_message_that_changes_more_is_loaded(self, client, conversation, text):
        if text == "Hello":
            variations.switch_off(conversation, ("message-1",))
            assert draft_of(client, conversation, draft=text) == ""
        assert begun(conversation, text) == ""
