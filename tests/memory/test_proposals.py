"""Compaction by hand: look first, then accept, change or drop."""

import asyncio

import pytest
from asgiref.sync import async_to_sync

from memory import actions, context, transcript, versions
from memory.compaction import compactor, proposals
from memory.engine.exceptions import EmptySummary
from tests.remembered import remembered

from .scenes import Recorder, add_turns, check_places, in_force, window

pytestmark = pytest.mark.django_db(transaction=True)


def nothing_open(conversation):
    return None


@pytest.fixture
@remembered
def conversation(alice):
    made = transcript.create_conversation(alice)
    add_turns(made, 5)
    return made


def plan(conversation, seq):
    return proposals.plan_proposal(conversation, seq, open_from=nothing_open)


def propose(conversation, seq, *answers):
    summariser = compactor.Summariser("m", Recorder(*answers))
    return async_to_sync(proposals.propose_summary)(
        conversation, seq, summariser, open_from=nothing_open
    )


def accept(conversation, proposal, text=None):
    return proposals.accept_proposal(
        conversation,
        proposal.signature,
        proposal.text if text is None else text,
        author=conversation.owner,
        open_from=nothing_open,
    )


class TestPlan:
    def test_plan_takes_whole_turns(self, conversation):
        for seq in (3, 4):
            planned = plan(conversation, seq)
            assert (planned.first_seq, planned.last_seq) == (1, 4)
            assert [message.id for message in planned.messages] == list("1234")

    def test_plan_has_the_size_before_and_after(self, conversation):
        planned = plan(conversation, 8)
        assert (
            planned.tokens_before == context.build_request_context(conversation).tokens
        )
        assert planned.tokens_after > 400

    @pytest.mark.parametrize("pins", [(), (2,), (2, 9)])
    def test_plan_counts_the_next_request(self, conversation, pins):
        accept(conversation, propose(conversation, 2))
        for seq in (1, *pins):
            actions.pin_message(conversation, seq)
        proposal = propose(conversation, 6, "They spoke of boats.")
        made = accept(conversation, proposal)
        sent = context.build_request_context(conversation).tokens
        assert proposal.plan.tokens_after == made.tokens_after == sent

    @pytest.mark.parametrize("seq", [9, 10, 11])
    def test_plan_rejects_the_last_turn_and_missing_messages(self, conversation, seq):
        with pytest.raises(actions.ActionError, match=f"#{seq}"):
            plan(conversation, seq)

    def test_plan_rejects_compacted_messages(self, conversation):
        accept(conversation, propose(conversation, 4))
        with pytest.raises(actions.ActionError, match="not in the window"):
            plan(conversation, 2)


class TestPropose:
    def test_proposal_changes_nothing(self, conversation):
        before = context.build_request_context(conversation).sha256
        proposal = propose(conversation, 4, "They spoke of 77 boats.")
        assert context.build_request_context(conversation).sha256 == before
        assert proposal.text == "They spoke of 77 boats."
        assert proposal.flags["unsupported"] == ["77"]

    def test_requests_of_a_proposal_are_recorded(self, conversation):
        propose(conversation, 4)
        call = conversation.model_calls.get()
        assert (call.purpose, call.tokens_input, call.summary) == ("summary", 50, None)

    def test_a_failing_summariser_changes_nothing(self, conversation):
        with pytest.raises(EmptySummary):
            propose(conversation, 4, "")
        assert not conversation.summaries.exists()


class TestAccept:
    def test_accepting_puts_the_summary_in_force(self, conversation):
        summary = accept(conversation, propose(conversation, 4, "They talked."))
        assert in_force(conversation) == [(1, 1, 4, "They talked.")]
        assert window(conversation) == [[5, 10]]
        assert (summary.author, summary.model) == (conversation.owner, "m")
        assert summary.trigger["kind"] == "manual"
        assert conversation.model_calls.get().summary == summary
        check_places(conversation)

    def test_the_words_may_be_changed(self, conversation):
        summary = accept(conversation, propose(conversation, 4), "I said 99 things.")
        assert summary.text == "I said 99 things."
        assert summary.flags == {"unsupported": ["99"]}
        assert summary.model == ""

    def test_accepting_extends_a_running_summary(self, alice):
        made = transcript.create_conversation(alice, preset="langgraph")
        add_turns(made, 5)
        accept(made, propose(made, 2))
        accept(made, propose(made, 6, "All of it."))
        assert in_force(made) == [(2, 1, 6, "All of it.")]

    def test_messages_that_came_meanwhile_do_not_matter(self, conversation):
        proposal = propose(conversation, 4)
        add_turns(conversation, 1)
        accept(conversation, proposal)
        assert window(conversation) == [[5, 12]]

    def test_accepting_fails_when_the_view_has_changed(self, conversation):
        proposal = propose(conversation, 4)
        actions.exclude_messages(conversation, [3])
        with pytest.raises(actions.ActionError, match="changed since"):
            accept(conversation, proposal)
        assert in_force(conversation) == []

    def test_accepting_fails_the_second_time(self, conversation):
        proposal = propose(conversation, 4)
        accept(conversation, proposal)
        with pytest.raises(actions.ActionError):
            accept(conversation, proposal)

    def test_accepting_rejects_an_empty_text(self, conversation):
        with pytest.raises(transcript.TextError, match="empty"):
            accept(conversation, propose(conversation, 4), " ")

    def test_accepting_rejects_a_foreign_signature(self, conversation, alice):
        other = transcript.create_conversation(alice)
        add_turns(other, 5)
        proposal = propose(conversation, 4)
        with pytest.raises(actions.ActionError, match="another conversation"):
            accept(other, proposal)
        with pytest.raises(actions.ActionError, match="out of date"):
            proposals.accept_proposal(
                conversation,
                proposal.signature + "x",
                "Text.",
                author=alice,
                open_from=nothing_open,
            )

    def test_accepting_fails_during_a_compaction(self, conversation):
        proposal = propose(conversation, 4)

        async def while_compaction():
            with pytest.raises(actions.ActionError, match="right now"):
                await asyncio.to_thread(accept, conversation, proposal)
            return "Automatic."

        summariser = compactor.Summariser("m", Recorder(while_compaction))
        done = async_to_sync(compactor.compact_conversation)(
            conversation.pk, summariser, force=True
        )
        assert done.state == "folded"


class TestReinstate:
    def test_reinstating_undoes_a_compaction(self, conversation):
        accept(conversation, propose(conversation, 4))
        actions.reinstate_versions(conversation, [], author=conversation.owner)
        assert window(conversation) == [[1, 10]]
        check_places(conversation)

    def test_reinstating_brings_the_former_versions_back(self, conversation):
        accept(conversation, propose(conversation, 4, "One."))
        before = [row.version for row in versions.active_summaries(conversation)]
        actions.rewrite_summary(conversation, 1, "Other.", author=conversation.owner)
        accept(conversation, propose(conversation, 8, "Two."))
        actions.reinstate_versions(conversation, before, author=conversation.owner)
        assert in_force(conversation) == [(4, 1, 4, "One.")]
        assert window(conversation) == [[5, 10]]
        check_places(conversation)

    def test_reinstating_rejects_outdated_versions(self, conversation):
        accept(conversation, propose(conversation, 4))
        actions.exclude_messages(conversation, [3])
        with pytest.raises(actions.ActionError, match="changed"):
            actions.reinstate_versions(conversation, [1], author=conversation.owner)

    def test_reinstating_rejects_versions_that_leave_a_gap(self, conversation):
        accept(conversation, propose(conversation, 4))
        accept(conversation, propose(conversation, 8))
        with pytest.raises(actions.ActionError, match="can't come back"):
            actions.reinstate_versions(conversation, [2], author=conversation.owner)
        with pytest.raises(actions.ActionError, match="no version 9"):
            actions.reinstate_versions(conversation, [9], author=conversation.owner)
