"""Actions of a user on the model's view, against the database."""

from itertools import pairwise

import pytest

from memory import actions, context, transcript, versions
from memory.compaction import lease
from memory.engine.exceptions import PolicyError
from memory.models import Message, Summary
from tests.remembered import remembered

from .scenes import add_turns, check_places, compact, in_force, window

# More than Python nests calls.
MANY = 1_100

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
@remembered
def conversation(alice):
    return transcript.create_conversation(alice, preset="langgraph")


@pytest.fixture
@remembered
def compacted(conversation):
    """v1 of 1..6 and v2 of 1..12, then the messages 13 and 14."""
    add_turns(conversation, 4)
    compact(conversation, "First.")
    add_turns(conversation, 3)
    compact(conversation, "Second.")
    return conversation


class TestExclude:
    def test_window_message_is_hidden_and_shown_again(self, compacted):
        actions.exclude_messages(compacted, [13])
        assert window(compacted) == [[14, 14]]
        assert check_places(compacted)["excluded"] == 1
        actions.include_messages(compacted, [13])
        assert window(compacted) == [[13, 14]]
        check_places(compacted)

    def test_hiding_a_covered_message_retracts_its_summary(self, compacted):
        actions.exclude_messages(compacted, [8])
        assert in_force(compacted) == [(3, 1, 6, "First.")]
        assert window(compacted) == [[7, 7], [9, 14]]
        check_places(compacted)

    def test_next_compaction_does_not_read_a_hidden_message(self, compacted):
        actions.exclude_messages(compacted, [8])
        recorder = compact(compacted, "Again.")
        assert "Reply 7." not in str(recorder.requests)
        assert in_force(compacted)[0][1:] == (1, 12, "Again.")

    def test_summary_without_a_message_cannot_be_restored_after_it_is_shown(
        self, compacted, alice
    ):
        actions.exclude_messages(compacted, [3])
        compact(compacted, "Without three.")
        version = in_force(compacted)[0][0]
        actions.include_messages(compacted, [3])
        with pytest.raises(actions.ActionError, match="its messages have changed"):
            actions.restore_version(compacted, version, author=alice)

    def test_unknown_message_raises_an_error(self, compacted):
        with pytest.raises(actions.ActionError, match="no such message"):
            actions.exclude_messages(compacted, [99])


class TestDelete:
    def test_deleted_text_is_gone_from_every_view(self, compacted):
        actions.delete_message(compacted, 2)
        assert compacted.messages.get(seq=2).text == ""
        assert in_force(compacted) == []
        assert "Reply 1." not in str(context.build_request_context(compacted).wire)
        assert check_places(compacted)["deleted"] == 1

    def test_deleted_message_stays_deleted(self, compacted):
        actions.delete_message(compacted, 2)
        with pytest.raises(actions.ActionError):
            actions.include_messages(compacted, [2])


class TestPin:
    def test_a_pinned_message_stays_word_for_word(self, compacted):
        before = window(compacted)
        actions.pin_message(compacted, 1)
        built = context.build_request_context(compacted)
        assert (built.refs["pinned"], built.refs["window"]) == ([[1, 1]], before)
        actions.unpin_message(compacted, 1)
        assert context.build_request_context(compacted).refs["pinned"] == []


class TestRestore:
    def test_an_older_version_comes_back_as_a_new_one(self, compacted, alice):
        new = actions.restore_version(compacted, 1, author=alice)
        assert (new.version, new.author) == (3, alice)
        assert new.trigger["kind"] == "restore"
        assert in_force(compacted) == [(3, 1, 6, "First.")]
        assert window(compacted) == [[7, 14]]
        check_places(compacted)

    def test_restoring_can_be_undone(self, compacted, alice):
        actions.restore_version(compacted, 1, author=alice)
        actions.restore_version(compacted, 2, author=alice)
        assert in_force(compacted) == [(4, 1, 12, "Second.")]
        check_places(compacted)

    def test_version_of_changed_messages_cannot_be_restored(self, compacted, alice):
        actions.exclude_messages(compacted, [8])
        with pytest.raises(actions.ActionError, match="its messages have changed"):
            actions.restore_version(compacted, 2, author=alice)

    def test_restored_range_in_the_middle_brings_those_before_it(self, alice):
        policy = {"trigger": ["messages", 4], "keep": ["messages", 2], "fan_in": 2}
        policy |= {"summary_budget": 8, "max_summary_tokens": 4}
        conversation = transcript.create_conversation(alice, policy=policy)
        for _ in range(4):
            add_turns(conversation, 1)
            compact(conversation, "Some words here.", "Merged words.")
        merged = next(
            row for row in versions.active_summaries(conversation) if row.level
        )
        second = merged.folded_from.order_by("first_seq")[1]
        actions.restore_version(conversation, second.version, author=alice)
        assert in_force(conversation)[0][1:3] == (1, second.first_seq - 1)
        check_places(conversation)


class TestRewrite:
    def test_a_users_text_is_a_new_version(self, compacted, alice):
        new = actions.rewrite_summary(compacted, 2, "As I recall it.", author=alice)
        assert (new.author, new.trigger["kind"]) == (alice, "edit")
        assert in_force(compacted) == [(3, 1, 12, "As I recall it.")]
        assert "As I recall it." in str(context.build_request_context(compacted).wire)
        check_places(compacted)

    def test_the_older_text_can_be_restored(self, compacted, alice):
        actions.rewrite_summary(compacted, 2, "As I recall it.", author=alice)
        actions.restore_version(compacted, 2, author=alice)
        assert in_force(compacted)[0][3] == "Second."

    def test_running_compaction_is_discarded_after_a_rewrite(self, compacted, alice):
        add_turns(compacted, 3)

        async def rewritten_meanwhile():
            from channels.db import database_sync_to_async

            await database_sync_to_async(actions.rewrite_summary)(
                compacted, 2, "X.", author=alice
            )
            return "From the old one."

        compact(compacted, rewritten_meanwhile)
        assert in_force(compacted) == [(3, 1, 12, "X.")]

    @pytest.mark.parametrize("text", ["", "  ", "a\0b"])
    def test_bad_text_is_refused(self, compacted, alice, text):
        with pytest.raises(transcript.TextError):
            actions.rewrite_summary(compacted, 2, text, author=alice)


class TestRebuild:
    def test_rebuilding_reads_every_message_again(self, compacted):
        actions.rebuild_memory(compacted)
        assert in_force(compacted) == []
        recorder = compact(compacted, "Again.")
        assert len(recorder.requests) == 1
        assert in_force(compacted)[0][1:] == (1, 12, "Again.")
        check_places(compacted)

    def test_restoring_can_be_undone(self, compacted, alice):
        actions.rebuild_memory(compacted)
        actions.restore_version(compacted, 2, author=alice)
        assert in_force(compacted)[0][3] == "Second."


class TestSetPolicy:
    def test_new_policy_continues_after_the_last_summary(self, compacted):
        actions.set_policy(
            compacted,
            {"preset": "layered", "trigger": ["messages", 4], "keep": ["turns", 1]},
        )
        add_turns(compacted, 3)
        compact(compacted, "A stretch.")
        assert [row[1:] for row in in_force(compacted)] == [
            (1, 12, "Second."),
            (13, 18, "A stretch."),
        ]
        actions.set_policy(compacted, {"preset": "langgraph"})
        add_turns(compacted, 3)
        recorder = compact(compacted, "Extended.")
        assert "A stretch." in str(recorder.requests)
        assert [row[1:3] for row in in_force(compacted)] == [(1, 12), (13, 24)]
        check_places(compacted)

    def test_wrong_policy_is_rejected_and_changes_nothing(self, compacted):
        with pytest.raises(PolicyError, match="fraction"):
            actions.set_policy(compacted, {"trigger": ["fraction", 1.5]})
        compacted.refresh_from_db()
        assert compacted.policy == {"preset": "langgraph"}

    def test_new_policy_lets_a_stopped_compaction_try_again(self, compacted):
        compacted.compaction_failures = 3
        compacted.save()
        actions.set_policy(compacted, {"preset": "guide"})
        assert lease.due_compactions() == [compacted.pk]


def test_actions_never_change_the_transcript(compacted, alice):
    before = list(Message.objects.order_by("seq").values_list("seq", "text"))
    actions.exclude_messages(compacted, [3])
    actions.include_messages(compacted, [3])
    actions.pin_message(compacted, 4)
    actions.rebuild_memory(compacted)
    compact(compacted)
    assert list(Message.objects.order_by("seq").values_list("seq", "text")) == before


def test_summary_with_a_thousand_ancestors_is_retracted(conversation):
    add_turns(conversation, 3)
    rows = Summary.objects.bulk_create(
        Summary(
            conversation=conversation,
            version=n,
            first_seq=1,
            last_seq=min(n, 6),
            text=f"Version {n}.",
            status="active" if n == MANY else "superseded",
        )
        for n in range(1, MANY + 1)
    )
    parents = Summary.folded_from.through
    parents.objects.bulk_create(
        parents(from_summary=child, to_summary=parent)
        for parent, child in pairwise(rows)
    )
    actions.exclude_messages(conversation, [3], edited=actions.EditChoice.WRITE)
    assert in_force(conversation) == [(MANY + 1, 1, 2, "Version 2.")]
