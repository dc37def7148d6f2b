"""The strategy "window" in the database: what leaves is not summarised, but it stays in
the transcript, is found, counted and proved.
"""

import pytest
from asgiref.sync import async_to_sync

from memory import actions, bundle, context, transcript, versions
from memory.integrity import audit
from memory.models import ModelCall, Summary
from memory.view import places, rebuilding

from .scenes import (
    add_turns,
    ask,
    check_places,
    compact,
    in_force,
    plant,
    reply_to,
    run_compaction,
    say,
    window,
)

pytestmark = pytest.mark.django_db(transaction=True)
POLICY = {"strategy": "window", "trigger": ["messages", 6], "keep": ["messages", 2]}


@pytest.fixture
def conversation(alice):
    made = transcript.create_conversation(alice, policy=POLICY)
    add_turns(made, 3)
    return made


def test_trimming_sends_no_request(conversation):
    summariser = compact(conversation)
    assert summariser.requests == []
    assert in_force(conversation) == [(1, 1, 4, "")]
    assert window(conversation) == [[5, 6]]
    assert not ModelCall.objects.filter(purpose=ModelCall.Purpose.SUMMARY)
    row = conversation.summaries.get()
    assert (row.is_trimmed, row.model, row.tokens_out) == (True, "", 0)
    assert row.tokens_after < row.tokens_before


def test_trimmed_messages_are_in_one_place(conversation):
    compact(conversation)
    assert check_places(conversation) == {"left": 4, "window": 2}
    add_turns(conversation, 2)
    compact(conversation)
    assert in_force(conversation) == [(2, 1, 8, "")]
    assert check_places(conversation) == {"left": 8, "window": 2}


def test_request_is_proved_and_counts_trimmed_messages(conversation):
    compact(conversation)
    call = say(conversation, "What now?")
    assert [each["role"] for each in rebuilding.rebuild_context(call).wire] == [
        *("system", "user", "assistant", "user"),
    ]
    assert rebuilding.verify_context(call)
    assert places.count_sent(call) == {"window": 2, "newest": 1, "left": 4}
    # Also when their messages have come back since.
    actions.set_policy(conversation, {})
    actions.rebuild_memory(conversation)
    assert rebuilding.verify_context(call)


def test_search_finds_trimmed_messages(conversation):
    add_turns(conversation, 1, words=0)
    message = ask(conversation, "The cat of my sister is called Mimi.")
    reply_to(message, "A nice name.")
    add_turns(conversation, 3)
    compact(conversation)
    newest = ask(conversation, "How is the cat of my sister called?")
    assert (
        9 in context.build_request_context(conversation, newest=newest).refs["recalled"]
    )


def test_new_strategy_begins_after_trimmed_messages(conversation):
    compact(conversation)
    actions.set_policy(conversation, {**POLICY, "strategy": "running"})
    add_turns(conversation, 2)
    summariser = compact(conversation, "Short.")
    assert summariser.read == [[5, 6, 7, 8]]
    assert in_force(conversation) == [(1, 1, 4, ""), (2, 5, 8, "Short.")]
    assert check_places(conversation) == {"left": 4, "summary": 4, "window": 2}


def test_changed_message_returns_and_is_trimmed_again(conversation):
    compact(conversation)
    actions.exclude_messages(conversation, [2])
    assert window(conversation) == [[1, 1], [3, 6]]
    assert check_places(conversation) == {"window": 5, "excluded": 1}
    actions.include_messages(conversation, [2])
    compact(conversation)
    assert check_places(conversation) == {"left": 4, "window": 2}


def test_deleted_message_leaves_no_trace_in_a_trim(conversation):
    compact(conversation)
    actions.delete_message(conversation, 1)
    assert "left" not in check_places(conversation)


def test_user_can_write_a_summary_of_trimmed_messages(conversation, alice):
    compact(conversation)
    actions.rewrite_summary(conversation, 1, "They talked of words.", author=alice)
    assert in_force(conversation) == [(2, 1, 4, "They talked of words.")]
    assert check_places(conversation) == {"summary": 4, "window": 2}
    actions.restore_version(conversation, 1, author=alice)
    assert check_places(conversation) == {"left": 4, "window": 2}


def test_important_messages_stay_word_for_word(conversation):
    actions.set_policy(conversation, {**POLICY, "important": ["Message 2"]})
    compact(conversation)
    assert context.build_request_context(conversation).refs["pinned"] == [[3, 3]]


def test_copy_keeps_trims(conversation, alice):
    compact(conversation)
    made = transcript.create_conversation(alice)
    bundle.write_bundle(made, bundle.read_bundle(conversation, 6))
    assert check_places(made) == {"left": 4, "window": 2}


@pytest.mark.parametrize("values", [{"model": "m"}, {"text": "", "model": "m"}])
def test_summary_without_its_text_is_no_trim(conversation, values):
    compact(conversation)
    plant(conversation.summaries.get(), **values)
    assert "R7.empty" in {each.code for each in audit.check_memory(hashes=False)}


def test_trim_version_is_signed(conversation):
    compact(conversation)
    assert not [*audit.find_broken_signatures()]
    plant(conversation.summaries.get(), last_seq=2)
    assert [*audit.find_broken_signatures()]


def test_erased_summary_is_no_trim(conversation):
    row = Summary(text="", model="", status=Summary.Status.ERASED)
    assert not row.is_trimmed
    assert not versions.active_summaries(conversation)


def test_the_trigger_topic_is_stored_with_what_it_measured(alice):
    policy = {"trigger": ["topic", 0.9], "keep": ["turns", 1]}
    made = transcript.create_conversation(alice, policy=policy)
    reply_to(ask(made, "Which temples should we see in Kyoto?"), "The golden temple.")
    assert async_to_sync(run_compaction)(made).state == "nothing"
    reply_to(ask(made, "My laptop crashes when it compiles."), "Update the compiler.")
    assert async_to_sync(run_compaction)(made).state == "folded"
    trigger = made.summaries.get().trigger
    assert trigger == {"kind": "topic", "value": 1.0, "limit": 0.9}
    assert in_force(made) == [(1, 1, 2, "They talked.")]
