"""Permanent deletion of a message: rows that go with it, and replies that no longer
answer it.
"""

import json

import pytest

from chatsite.features.importing.exporting.thread import export_thread
from chatsite.jobs import queue, summary_proposals
from chatsite.protocol.errors import CommandError, explain_code
from chatsite.turns import attempt, commands, lifecycle, titles
from chatsite.turns.models import Job, Turn
from memory import transcript
from memory.models import Conversation, ModelCall, Summary
from memory.view import rebuilding
from tests.memory.scenes import summarise
from tests.remembered import remembered

from ..scenes import HTMX, memory_url, page_of, talk_in_turns, url, violations

KEY = "AKIA4711SECRET99"
State = Turn.State


@pytest.fixture
@remembered
def conversation(alice):
    made = transcript.create_conversation(alice)
    talk_in_turns(made, f"my key is {KEY}, keep it", "Two", "Three", reply="noted")
    return Conversation.objects.get(pk=made.pk)


def delete(client, conversation, seq):
    target = memory_url("message", conversation, seq=seq, name="delete")
    answer = client.post(target, headers=HTMX)
    assert answer.status_code == 200, answer.content
    conversation.refresh_from_db()


def exported(conversation):
    return json.loads(json.dumps(export_thread(conversation), default=str))


class TestWords:
    def test_every_version_that_covers_it_is_blanked(self, client, conversation):
        text = f"Told a key.\nIdentifiers: {KEY}"
        first = summarise(conversation, 1, 2, text=text, flags={"carried": [KEY]})
        summarise(conversation, 1, 4, text=text, replaces=[first])
        later = summarise(conversation, 5, 6, text="Three was said.")
        hashes = [*conversation.summaries.values_list("version", "policy_hash")]
        delete(client, conversation, 1)
        value = exported(conversation)
        assert KEY not in json.dumps(value)
        assert [row["status"] for row in value["summaries"]] == [
            *("erased", "erased"),
            "superseded",
        ]
        later.refresh_from_db()
        assert later.text == "Three was said."
        assert [*conversation.summaries.values_list("version", "policy_hash")] == hashes
        assert value["messages"][0]["deleted"]
        assert violations() == []

    def test_a_request_with_an_erased_summary_counts_as_erased(
        self, client, conversation
    ):
        summarise(conversation, 1, 2, text=f"A key {KEY}.")
        talk_in_turns(conversation, "Four")
        call = conversation.model_calls.filter(purpose="reply").latest("pk")
        assert call.refs["summaries"] == [1]
        assert rebuilding.verify_context(call)
        delete(client, conversation, 1)
        call = ModelCall.objects.get(pk=call.pk)
        assert not rebuilding.verify_context(call)
        assert rebuilding.is_erased(call)
        assert violations() == []

    def test_the_history_says_why_a_version_has_no_text(self, client, conversation):
        summarise(conversation, 1, 2, text=f"A key {KEY}.")
        delete(client, conversation, 1)
        versions = client.get(memory_url("summaries", conversation))
        assert "permanently deleted" in versions.content.decode()
        target = memory_url("restore", conversation, version=1)
        restored = client.post(target, headers=HTMX)
        assert "erased" in restored.content.decode()
        assert not Summary.objects.filter(status="active").exists()

    def test_an_automatic_title_is_made_of_what_is_left(self, client, conversation):
        assert KEY in conversation.title
        delete(client, conversation, 1)
        assert conversation.title == "Two"
        assert conversation.title_set_by == "auto"

    def test_a_title_made_meanwhile_is_not_set(self, client, conversation, settings):
        settings.TITLES_ENABLED = True
        job = titles._prepare_request(conversation.pk)
        delete(client, conversation, 1)
        reply = type("Reply", (), {"text": KEY, "usage_metadata": None})()
        reply.response_metadata = {"finish_reason": "stop"}
        assert titles._finish_title(job, reply) == ""
        conversation.refresh_from_db()
        assert KEY not in conversation.title

    def test_the_title_of_a_branch_goes_too(self, client, conversation):
        client.post(url("branch", conversation), {"seq": 4})
        branch = Conversation.objects.get(branched_from=conversation)
        assert KEY in branch.title
        delete(client, branch, 1)
        assert branch.title == "Two"

    def test_title_that_a_user_chose_stays(self, client, conversation):
        transcript.rename_conversation(conversation, "Mine")
        delete(client, conversation, 1)
        assert conversation.title == "Mine"

    def test_a_late_message_leaves_the_title_alone(self, client, conversation):
        talk_in_turns(conversation, "Four", "Five", "Six")
        title = conversation.title
        delete(client, conversation, 9)
        assert conversation.title == title

    def test_previews_that_may_quote_it_go(self, client, alice, conversation):
        claim = queue.add(summary_proposals.KIND, alice, "slot", conversation)
        queue.close_job(claim, "done", result={"text": KEY})
        going = queue.add(summary_proposals.KIND, alice, "other", conversation)
        delete(client, conversation, 1)
        assert not Job.objects.exists()
        assert not queue.renew(going)


class TestTurns:
    def test_waiting_turn_ends_with_the_reason(self, client, conversation):
        first = commands.submit_message(conversation, text="first", client_id="a").turn
        second = commands.submit_message(conversation, text="second", client_id="b")
        delete(client, conversation, second.message.seq)
        turn = Turn.objects.get(pk=second.turn.pk)
        assert (turn.state, turn.error) == (State.STOPPED, "message_deleted")
        assert lifecycle.claim(conversation.pk).row_id == first.pk
        assert explain_code("message_deleted") in page_of(client, conversation)
        row = next(m for m in exported(conversation)["messages"] if m["seq"] == 9)
        assert row["error"] == "message_deleted"

    def test_failed_turn_cannot_be_retried(self, client, conversation):
        sent = commands.submit_message(
            conversation, text="my card is 4111", client_id="a"
        )
        claim = lifecycle.claim(conversation.pk)
        lifecycle.finish(claim, lifecycle.TurnResult(State.FAILED, "", error="timeout"))
        delete(client, conversation, sent.message.seq)
        with pytest.raises(CommandError, match="is gone"):
            commands.retry_turn(conversation, sent.turn.pk)
        assert 'value="retry"' not in page_of(client, conversation)

    def test_running_turn_is_stopped(self, client, conversation):
        sent = commands.submit_message(
            conversation, text="my card is 4111", client_id="a"
        )
        claim = lifecycle.claim(conversation.pk)
        delete(client, conversation, sent.message.seq)
        assert lifecycle.checkpoint(claim, "Your c") is lifecycle.LeaseStatus.CANCELLED
        result = attempt.prepare_attempt(claim)
        assert (result.state, result.error) == (State.STOPPED, "message_deleted")
        turn = lifecycle.finish(claim, lifecycle.TurnResult(State.STOPPED, ""))
        assert (turn.state, turn.error) == (State.STOPPED, "message_deleted")
        assert violations() == []

    def test_turn_of_a_dead_process_is_not_taken_over(self, client, conversation):
        sent = commands.submit_message(
            conversation, text="my card is 4111", client_id="a"
        )
        lifecycle.claim(conversation.pk)
        delete(client, conversation, sent.message.seq)
        Turn.objects.filter(pk=sent.turn.pk).update(lease_until="2000-01-01T00:00:00Z")
        [turn] = lifecycle.end_orphans(conversation.pk)
        assert (turn.state, turn.error) == (State.STOPPED, "message_deleted")
        assert lifecycle.claim(conversation.pk) is None

    def test_turn_that_is_to_stop_sends_no_request(self, conversation):
        sent = commands.submit_message(conversation, text="Hello", client_id="a")
        claim = lifecycle.claim(conversation.pk)
        commands.stop_turn(conversation, sent.turn.pk)
        assert attempt.prepare_attempt(claim).state == State.STOPPED


class TestAttempts:
    def test_numbers_never_go_back_within_a_turn(self, conversation):
        turn = commands.submit_message(conversation, text="Hello", client_id="a").turn
        seen = []

        def die():
            seen.append(lifecycle.claim(conversation.pk).attempt)
            rows = Turn.objects.filter(pk=turn.pk)
            rows.update(lease_until="2000-01-01T00:00:00Z")

        for ask_again in (
            commands.retry_turn,
            commands.retry_turn,
            commands.regenerate_reply,
        ):
            die()
            die()
            [ended] = lifecycle.end_orphans(conversation.pk)
            assert ended.state == State.INTERRUPTED
            again = ask_again(conversation, turn.pk)
            assert again.text_attempt == seen[-1]
        die()
        assert seen == [1, 2, 3, 4, 5, 6, 7]
