"""Summaries that a user wrote stay in force until the user decides otherwise.

No change of a message, and no model, puts them out of force, and each can come back.
"""

import pytest
from asgiref.sync import async_to_sync

from memory import actions, context, transcript, versions
from memory.actions import EditChoice
from memory.compaction import lease
from memory.engine.plan import plan_merge
from memory.engine.policy import Policy
from memory.engine.summaries import summarizer
from memory.engine.tokens import count_tokens
from memory.models import Summary
from tests.memory.engine import chats
from tests.remembered import remembered

from . import scenes
from .scenes import add_turns, check_places, in_force

pytestmark = pytest.mark.django_db(transaction=True)
SEGMENTS = {"trigger": ["messages", 6], "keep": ["messages", 2]}
MINE = "I go to Nara."


def compact(conversation, *answers):
    lease.reset_back_off(conversation)
    return scenes.compact(conversation, *answers)


@pytest.fixture
@remembered
def edited(alice):
    """v1 of 1..4, v4 of 5..8 by Alice, v3 of 9..12, then the messages 13 and 14."""
    made = transcript.create_conversation(alice, policy=SEGMENTS)
    for turns in (3, 2, 2):
        add_turns(made, turns)
        compact(made)
    actions.rewrite_summary(made, 2, MINE, author=alice)
    return made


def spans(conversation):
    return [
        (version, first, last) for version, first, last, _ in in_force(conversation)
    ]


BEFORE = [(1, 1, 4), (4, 5, 8), (3, 9, 12)]
ACTS = {
    "hide": lambda row, seq, **more: actions.exclude_messages(row, [seq], **more),
    "delete": actions.delete_message,
}


def hide(conversation, seq, edited=EditChoice.WRITE):
    actions.exclude_messages(conversation, [seq], edited=edited)


def show(conversation, seq, edited=EditChoice.WRITE):
    actions.include_messages(conversation, [seq], edited=edited)


class TestAsking:
    @pytest.mark.parametrize("act", ACTS)
    def test_hiding_a_message_changes_nothing_until_the_user_chooses(self, edited, act):
        with pytest.raises(actions.EditedError, match="v4 covers this message"):
            ACTS[act](edited, 7, edited=EditChoice.ASK)
        assert spans(edited) == BEFORE
        assert edited.messages.get(seq=7).excluded_at is None
        assert edited.messages.get(seq=7).text

    def test_showing_a_message_asks_the_user_too(self, edited):
        hide(edited, 7, EditChoice.KEEP)
        with pytest.raises(actions.EditedError, match="v5"):
            show(edited, 7, EditChoice.ASK)

    def test_deletion_alone_warns_that_words_may_be_repeated(self, edited):
        with pytest.raises(actions.EditedError, match="may repeat"):
            actions.delete_message(edited, 7, edited=EditChoice.ASK)

    @pytest.mark.parametrize("seq", [3, 10, 13])
    def test_user_is_not_asked_about_summaries_of_a_model(self, edited, seq):
        hide(edited, seq, EditChoice.ASK)
        assert edited.messages.get(seq=seq).excluded_at

    def test_user_is_asked_about_summaries_set_aside(self, edited):
        hide(edited, 3)
        assert spans(edited) == []
        with pytest.raises(actions.EditedError):
            hide(edited, 7, EditChoice.ASK)


class TestKeeping:
    def test_kept_words_are_in_force_as_a_new_version(self, edited, alice):
        hide(edited, 7, EditChoice.KEEP)
        assert spans(edited) == [(1, 1, 4), (5, 5, 8), (3, 9, 12)]
        kept = edited.summaries.get(version=5)
        assert (kept.text, kept.author, kept.is_by_hand) == (MINE, alice, True)
        assert edited.summaries.get(version=4).status == Summary.Status.STALE
        assert compact(edited).requests == []
        check_places(edited)

    def test_sources_of_a_kept_summary_do_not_come_back(self, edited, alice):
        hide(edited, 7, EditChoice.KEEP)
        assert not edited.summaries.get(version=5).folded_from.exists()
        actions.rewrite_summary(edited, 5, "Mine again.", author=alice)
        hide(edited, 8)
        assert [row[0] for row in spans(edited)] == [1]

    def test_summary_set_aside_is_kept_and_returns(self, edited):
        hide(edited, 3)
        hide(edited, 7, EditChoice.KEEP)
        compact(edited, "The first.")
        assert [row[1:] for row in in_force(edited)] == [
            (1, 4, "The first."),
            (5, 8, MINE),
            (9, 12, "They talked."),
        ]
        check_places(edited)

    def test_a_deletion_erases_the_older_versions_only(self, edited):
        actions.delete_message(edited, 7, edited=EditChoice.KEEP)
        texts = dict(edited.summaries.values_list("version", "text"))
        assert (texts[2], texts[4], texts[5]) == ("", "", MINE)
        assert MINE in str(context.build_request_context(edited).wire)
        check_places(edited)

    def test_a_deletion_erases_every_version_that_is_written_again(self, edited):
        actions.delete_message(edited, 7, edited=EditChoice.WRITE)
        assert not edited.summaries.filter(text=MINE).exists()

    def test_call_and_result_are_both_hidden_and_the_words_stay(self, alice):
        made = transcript.create_conversation(alice, policy=SEGMENTS)
        scenes.say_with_tools(made, "Look it up.", ("search", "Found."))
        add_turns(made, 3)
        compact(made)
        (version, first, last), *_ = spans(made)
        assert (first, last >= 4) == (1, True)
        actions.rewrite_summary(made, version, MINE, author=alice)
        asked = made.messages.exclude(tool_calls=[]).get().seq
        actions.delete_message(made, asked, edited=EditChoice.KEEP)
        assert in_force(made)[0][3] == MINE
        check_places(made)


class TestUndoing:
    def undo(self, conversation, seq, wanted, seen):
        show(conversation, seq, EditChoice.WRITE)
        return actions.put_back_versions(conversation, wanted, seen)

    def seen(self, conversation):
        return versions.digest_view(conversation, 12)

    @pytest.mark.parametrize("answer", [EditChoice.KEEP, EditChoice.WRITE])
    @pytest.mark.parametrize("is_late", [False, True])
    def test_the_same_versions_are_in_force_again(self, edited, answer, is_late):
        seen = self.seen(edited)
        hide(edited, 7, answer)
        if is_late:
            compact(edited, "By the model.")
        assert self.undo(edited, 7, [1, 4, 3], seen)
        assert spans(edited) == BEFORE
        assert compact(edited).requests == []
        check_places(edited)

    def test_undo_is_refused_after_another_message_was_hidden(self, edited):
        seen = self.seen(edited)
        hide(edited, 7)
        hide(edited, 8)
        assert not self.undo(edited, 7, [1, 4, 3], seen)
        assert "Nara" not in str(context.build_request_context(edited).wire)
        check_places(edited)

    def test_later_summaries_stay_after_an_undo(self, edited):
        seen = self.seen(edited)
        hide(edited, 7)
        add_turns(edited, 3)
        compact(edited)
        behind = spans(edited)[-1]
        assert behind[1] == 13
        assert self.undo(edited, 7, [1, 4, 3], seen)
        assert spans(edited) == [*BEFORE, behind]
        check_places(edited)

    def test_later_change_still_brings_back_the_sources(self, edited):
        seen = self.seen(edited)
        hide(edited, 7)
        self.undo(edited, 7, [1, 4, 3], seen)
        hide(edited, 10)
        assert spans(edited) == BEFORE[:2]
        check_places(edited)

    def test_undo_puts_no_gap_in_force(self, edited):
        seen = self.seen(edited)
        assert not actions.put_back_versions(edited, [1, 3], seen)
        assert not actions.put_back_versions(edited, [99], seen)
        assert spans(edited) == BEFORE


class TestRestoring:
    def test_stale_version_is_restored_on_request(self, edited, alice):
        hide(edited, 7)
        compact(edited, "By the model.")
        new = actions.restore_version(edited, 4, author=alice, may_be_stale=True)
        assert in_force(edited)[1] == (new.version, 5, 8, MINE)
        assert edited.summaries.get(version=4).status == Summary.Status.STALE
        check_places(edited)

    def test_staff_cannot_restore_a_stale_version(self, edited, alice):
        hide(edited, 7)
        with pytest.raises(actions.ActionError, match="messages have changed"):
            actions.restore_version(edited, 4, author=alice)

    def test_restored_version_lists_messages_hidden_since(self, edited, alice):
        hide(edited, 5)
        hide(edited, 7)
        compact(edited)
        found = versions.hidden_since(edited, edited.summaries.all())
        assert found[4] == [[5, 5], [7, 7]]
        new = actions.restore_version(edited, 4, author=alice, may_be_stale=True)
        hide(edited, 8)
        again = versions.hidden_since(edited, edited.summaries.all())
        assert again[new.version] == [[5, 5], [7, 8]]

    def test_later_summaries_stay_when_an_earlier_one_is_restored(self, edited, alice):
        actions.rewrite_summary(edited, 1, "Tea.", author=alice)
        actions.restore_version(edited, 1, author=alice)
        assert spans(edited) == [(6, 1, 4), (4, 5, 8), (3, 9, 12)]
        assert compact(edited).requests == []
        check_places(edited)

    def test_a_summary_set_aside_stays_when_an_earlier_one_is_restored(
        self, edited, alice
    ):
        actions.rewrite_summary(edited, 3, "Tea.", author=alice)
        hide(edited, 6)
        actions.rewrite_summary(edited, 1, "Milk.", author=alice)
        actions.restore_version(edited, 1, author=alice)
        compact(edited)
        assert in_force(edited)[-1] == (5, 9, 12, "Tea.")
        check_places(edited)

    def test_user_is_asked_before_a_longer_edited_summary_is_replaced(self, alice):
        made = transcript.create_conversation(
            alice, policy=SEGMENTS | {"strategy": "running"}
        )
        for turns in (3, 3):
            add_turns(made, turns)
            compact(made)
        actions.rewrite_summary(made, 2, MINE, author=alice)
        with pytest.raises(actions.EditedError, match="v3 covers messages of v1"):
            actions.restore_version(made, 1, author=alice)
        assert in_force(made)[0][3] == MINE
        actions.restore_version(made, 1, author=alice, edited=EditChoice.WRITE)
        assert MINE not in str(in_force(made))
        check_places(made)

    def test_undo_keeps_a_summary_that_was_written_since(self, edited, alice):
        before = [version for version, *_ in spans(edited)]
        actions.rewrite_summary(edited, 1, "Tea.", author=alice)
        made = [version for version, *_ in spans(edited)]
        add_turns(edited, 2)
        compact(edited)
        newest = spans(edited)[-1]
        actions.rewrite_summary(edited, newest[0], "Milk.", author=alice)
        actions.reinstate_versions(edited, before, author=alice, made=made)
        assert [row[1:] for row in spans(edited)] == [
            *(row[1:] for row in BEFORE),
            newest[1:],
        ]
        assert in_force(edited)[-1][3] == "Milk."
        check_places(edited)

    def test_undo_is_refused_over_a_summary_that_was_edited_since(self, edited, alice):
        before = [version for version, *_ in spans(edited)]
        actions.rewrite_summary(edited, 1, "Tea.", author=alice)
        made = [version for version, *_ in spans(edited)]
        actions.rewrite_summary(edited, 3, "Milk.", author=alice)
        with pytest.raises(actions.ActionError, match="edited since"):
            actions.reinstate_versions(edited, before, author=alice, made=made)
        assert in_force(edited)[-1][3] == "Milk."

    def test_undo_of_a_hidden_message_keeps_a_summary_edited_since(self, edited, alice):
        seen = versions.digest_view(edited, 12)
        hide(edited, 2)
        compact(edited)
        made = [version for version, *_ in spans(edited)]
        actions.rewrite_summary(edited, 3, "Milk.", author=alice)
        show(edited, 2)
        assert not actions.put_back_versions(edited, [1, 4, 3], seen, made)
        compact(edited)
        assert in_force(edited)[-1][3] == "Milk."
        check_places(edited)

    def test_edited_summaries_stay_when_the_others_are_rebuilt(self, edited):
        actions.rebuild_memory(edited, edited=EditChoice.KEEP)
        compact(edited)
        assert in_force(edited)[1] == (4, 5, 8, MINE)
        assert [row[1:3] for row in in_force(edited)] == [(1, 4), (5, 8), (9, 12)]
        check_places(edited)


class TestMerging:
    def blocks(self, *by_hand):
        made = [
            chats.block(n, 2 * n - 1, 2 * n, text=f"Text {n}.") for n in range(1, 7)
        ]
        return [
            block if block.version not in by_hand else hand(block) for block in made
        ]

    def merge(self, blocks, **options):
        policy = Policy(summary_budget=100, fan_in=2)
        step = plan_merge(policy, blocks, **options)
        return step and [block.version for block in step.replaces]

    def test_edited_summaries_are_not_merged(self):
        assert self.merge(self.blocks()) == [1, 2]
        assert self.merge(self.blocks(2)) == [3, 4]
        assert self.merge(self.blocks(2, 4, 6)) is None

    def test_edited_summaries_are_merged_if_nothing_else_makes_room(self):
        assert self.merge(self.blocks(2), most=100) == [3, 4]
        assert self.merge(self.blocks(2, 4, 6), most=100) == [1, 2, 3, 4, 5, 6]

    @pytest.mark.parametrize("is_by_hand", [False, True])
    def test_merged_edits_are_read_even_if_the_messages_would_fit(self, is_by_hand):
        blocks = self.blocks(*[2] * is_by_hand)[:2]
        model = scenes.Recorder("A summary of both.")
        async_to_sync(summarizer.merge_summaries)(
            model,
            blocks,
            chats.chat(4),
            policy=Policy(min_summary_chars=1),
            count_tokens=count_tokens,
        )
        assert ("Text 2." in str(model.requests)) == is_by_hand


def hand(block):
    return type(block)(*block_values(block), by_hand=True)


def block_values(block):
    return (
        *(block.version, block.level, block.first_seq, block.last_seq),
        *(block.text, block.tokens),
    )


def test_an_edited_summary_is_checked_like_one_of_a_model(alice):
    made = transcript.create_conversation(alice, policy=SEGMENTS)
    message = scenes.ask(made, "The budget is 3,200 euros and Mia comes along.", "b")
    scenes.reply_to(message, "Noted.")
    add_turns(made, 3)
    compact(made)
    new = actions.rewrite_summary(made, 1, "They go to Oslo.", author=alice)
    assert any("3,200" in line for line in new.flags["dropped"])
    assert new.flags["unsupported"] == ["Oslo"]
