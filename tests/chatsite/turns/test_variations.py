"""Requests that differ from what the conversation would send: of one message only, and
proved like all others.
"""

import pytest
from asgiref.sync import async_to_sync

from chatsite.turns import commands, requests, runner, variations
from memory import actions
from memory.models import Conversation, Prompt
from memory.view import rebuilding
from memory.view.variation import Variation, list_sent, vary_refs
from tests.memory.scenes import summarise

from ..scenes import submit, violations

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def chat(conversation, settings):
    """Four messages, of which a summary covers two."""
    settings.DEMO_TOKENS_PER_SECOND = 0
    summarise(conversation, 1, 2, text="Lance was greeted.")
    return Conversation.objects.get(pk=conversation.pk)


def run_turns(chat):
    async_to_sync(runner._drive_turns)(chat.pk)
    chat.refresh_from_db()


def say(chat, text):
    """The request of a message's reply, as a server process sends it."""
    turn = submit(chat, text).turn
    run_turns(chat)
    return chat.model_calls.filter(message__turn=turn).latest("pk")


def test_empty_variation_is_the_same_request(chat):
    call = say(chat, "And the hotel?")
    form = requests.form_of(call.model)
    same = variations.compose_varied(chat, call.refs, Variation(), limit=9_000, **form)
    assert same.sha256 == call.sha256
    assert same.refs.pop("trial") == {}
    assert same.refs == call.refs


def test_the_next_request_alone_differs(chat):
    variations.set_next(
        chat, Variation(edited=3, text="What is left?", without_summaries=True)
    )
    shown = requests.next_turn(chat, draft="One more")
    call = say(chat, "One more")
    assert [each["content"] for each in shown.wire] == [
        each["content"] for each in rebuilding.rebuild_context(call).wire
    ]
    texts = [each["content"] for each in shown.wire]
    assert "What is left?" in texts
    assert "What is my budget?" not in texts
    assert call.refs["trial"] == {"edited": 3, "without_summaries": True}
    following = say(chat, "And one more")
    assert "trial" not in following.refs
    assert following.refs["summaries"]
    assert violations() == []


def test_regenerated_reply_has_no_variation(chat):
    variations.set_next(chat, Variation(without_summaries=True))
    first = say(chat, "One more")
    commands.regenerate_reply(chat, chat.turns.latest("pk").pk)
    run_turns(chat)
    again = chat.model_calls.filter(purpose="reply").latest("pk")
    assert first.refs["summaries"] == []
    assert again.refs["summaries"] != []


def test_other_words_go_with_the_message(chat):
    variations.set_next(chat, Variation(edited=3, text="A secret of mine"))
    say(chat, "One more")
    variations.set_next(chat, Variation(edited=3, text="Another secret"))
    actions.delete_message(chat, 3)
    chat.refresh_from_db()
    assert chat.next_request == {}
    assert not Prompt.objects.filter(text__contains="secret").exists()
    assert violations() == []


def test_references_lose_and_gain_whole_groups(chat):
    refs = {
        **{"newest": 9, "window": [[3, 8]], "pinned": [[1, 1]], "summaries": [1]},
        **{"recalled": [2], "excerpts": [[2, 0, 9]], "images": [[4, 0, 85]]},
    }
    varied, _texts = vary_refs(chat, refs, Variation(left_out=4, brought_back=2))
    assert list_sent(varied) == {1, 2, 3, 5, 6, 7, 8, 9}
    assert (varied["recalled"], varied["excerpts"]) == ([], [])
    assert varied["images"] == []
    assert refs["window"] == [[3, 8]]
