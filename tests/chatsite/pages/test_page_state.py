"""The hash by which a page knows that its right pane is up to date."""

import re

import pytest

from chatsite.live import fragments
from chatsite.turns import variations
from memory import actions, transcript
from memory.models import Change, Conversation

from ..scenes import answer, page_of, submit

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
