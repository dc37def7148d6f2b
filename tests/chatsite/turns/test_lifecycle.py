"""The state machine of a turn, against the real database and without a model."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models.functions import Now

from chatsite.protocol.errors import CommandError
from chatsite.turns import commands, lifecycle
from chatsite.turns.models import Turn
from memory import context, transcript, versions
from memory.models import ModelCall
from memory.view import rebuilding
from tests.patience import wait_for

from ..scenes import answer, submit

pytestmark = pytest.mark.django_db

State = Turn.State


@pytest.fixture
def conversation(alice):
    return transcript.create_conversation(alice)


def expire(turn_id):
    Turn.objects.filter(pk=turn_id).update(lease_until=Now() - timedelta(seconds=1))


class TestSubmit:
    def test_submit_stores_the_message_and_queues_its_turn(self, conversation):
        sent = submit(conversation)
        assert sent.created
        assert (sent.message.seq, sent.turn.reply_seq) == (1, 2)
        assert sent.turn.state == State.QUEUED

    def test_submit_reserves_the_number_of_the_queued_reply(self, conversation):
        sent = [submit(conversation, text) for text in "abc"]
        assert [each.message.seq for each in sent] == [1, 3, 5]
        assert [each.position for each in sent] == [0, 1, 2]

    def test_same_client_id_is_stored_once(self, conversation):
        first, again = (submit(conversation, client_id="same") for _ in range(2))
        assert not again.created
        assert (again.turn, again.message) == (first.turn, first.message)
        assert conversation.messages.count() == 1

    def test_same_client_id_with_another_text_is_refused(self, conversation):
        submit(conversation, "Hello", "x")
        with pytest.raises(transcript.TextError) as refused:
            submit(conversation, "Bye", "x")
        assert refused.value.code == "conflict"

    @pytest.mark.parametrize(
        ("text", "code"),
        [
            ("", "empty"),
            (" \n\t　", "empty"),
            ("x" * 32_001, "too_long"),
            ("a\0b", "bad_text"),
            ("a\ud800b", "bad_text"),
            (None, "bad_text"),
            (["x"], "bad_text"),
        ],
    )
    def test_bad_text_is_refused_and_not_stored(self, conversation, text, code):
        with pytest.raises(transcript.TextError) as refused:
            commands.submit_message(conversation, text=text, client_id="x")
        assert refused.value.code == code
        assert not conversation.messages.exists()
        conversation.refresh_from_db()
        assert conversation.next_seq == 1

    def test_error_names_the_limit_of_a_long_text(self, conversation):
        with pytest.raises(transcript.TextError, match="32,000"):
            submit(conversation, "x" * 32_001, "x")

    @pytest.mark.parametrize("client_id", ["", None, 7, "a b", "x" * 65, "é"])
    def test_bad_client_id_is_refused(self, conversation, client_id):
        with pytest.raises(transcript.TextError) as refused:
            commands.submit_message(conversation, text="Hello", client_id=client_id)
        assert refused.value.code == "bad_client_id"

    def test_submit_titles_the_conversation_once(self, conversation):
        assert submit(conversation, "  Plan   a trip ", "x").title == "Plan a trip"
        assert submit(conversation, "And now?", "y").title == ""
        conversation.refresh_from_db()
        assert conversation.title == "Plan a trip"

    def test_submit_keeps_a_title_that_a_user_set(self, conversation):
        transcript.rename_conversation(conversation, "Mine")
        assert submit(conversation).title == ""


def send(conversation, text="Hello", **options):
    return commands.send_message(conversation, text=text, client_id=text, **options)


class TestSend:
    def test_a_turn_with_nothing_in_front_is_claimed_at_once(self, conversation):
        sent = send(conversation)
        turn = Turn.objects.get()
        assert (turn.state, turn.attempt) == (State.RUNNING, 1)
        assert turn.owner == sent.claim.owner
        assert lifecycle.due() == []
        expire(turn.pk)
        assert lifecycle.due() == [conversation.pk]

    def test_the_next_one_waits_for_it(self, conversation):
        sent = [send(conversation, text) for text in "abc"]
        assert [each.position for each in sent] == [0, 1, 2]
        assert [each.claim is None for each in sent] == [False, True, True]
        assert sent[1].turn.state == State.QUEUED

    def test_a_process_that_ends_leaves_it_to_another(self, conversation):
        assert send(conversation, run=False).claim is None
        assert lifecycle.due() == [conversation.pk]

    def test_turn_waits_for_a_place_of_its_owner(self, alice, settings):
        settings.TURNS_PER_USER = 2
        made = [transcript.create_conversation(alice) for _ in range(3)]
        claims = [send(each).claim for each in made]
        assert [claim is None for claim in claims] == [False, False, True]

    def test_a_refused_message_leaves_nothing(self, conversation, settings):
        settings.QUEUED_PER_USER = 1
        send(conversation, "first")
        with pytest.raises(CommandError, match="still wait"):
            send(conversation, "second")
        assert conversation.messages.count() == 1


class TestBegin:
    def test_turn_that_is_to_stop_is_not_sent(self, conversation):
        claim = send(conversation).claim
        built = context.build_request_context(
            conversation, newest=claim.turn.user_message
        )
        commands.stop_turn(conversation, claim.row_id)
        hold = lifecycle.begin(claim, built, "m")
        assert hold is lifecycle.LeaseStatus.CANCELLED
        assert not ModelCall.objects.exists()


class TestClaim:
    def test_claim_takes_the_oldest_turn_once(self, conversation):
        first = submit(conversation, "a")
        submit(conversation, "b")
        claim = lifecycle.claim(conversation.pk)
        assert (claim.row_id, claim.attempt) == (first.turn.pk, 1)
        assert lifecycle.claim(conversation.pk) is None

    def test_the_database_allows_one_running_turn(self, conversation):
        first, second = submit(conversation, "a").turn, submit(conversation, "b").turn
        Turn.objects.filter(pk=first.pk).update(state=State.RUNNING)
        with pytest.raises(IntegrityError), transaction.atomic():
            Turn.objects.filter(pk=second.pk).update(state=State.RUNNING)

    def test_claim_takes_over_when_the_lease_has_ended(self, conversation):
        submit(conversation)
        lost = lifecycle.claim(conversation.pk)
        expire(lost.row_id)
        taken = lifecycle.claim(conversation.pk)
        assert taken.attempt == 2
        assert lifecycle.checkpoint(lost, "old") is lifecycle.LeaseStatus.LOST
        assert lifecycle.finish(lost, lifecycle.TurnResult(State.DONE, "old")) is None
        assert not conversation.messages.filter(seq=2).exists()

    def test_turn_is_interrupted_after_two_attempts(self, conversation):
        turn = submit(conversation).turn
        for _ in range(2):
            claim = lifecycle.claim(conversation.pk)
            lifecycle.checkpoint(claim, "So far")
            expire(turn.pk)
        assert lifecycle.claim(conversation.pk) is None
        assert lifecycle.end_orphans(conversation.pk) == [turn]
        turn.refresh_from_db()
        assert (turn.state, turn.error) == (State.INTERRUPTED, "interrupted")
        assert turn.reply.text == "So far"

    def test_next_turn_is_claimed_after_an_orphan(self, conversation):
        orphan = submit(conversation, "a").turn
        waiting = submit(conversation, "b").turn
        lifecycle.claim(conversation.pk)
        Turn.objects.filter(pk=orphan.pk).update(attempt=2)
        expire(orphan.pk)
        lifecycle.end_orphans(conversation.pk)
        assert lifecycle.claim(conversation.pk).row_id == waiting.pk

    def test_orphan_that_is_to_stop_is_ended(self, conversation):
        turn = submit(conversation).turn
        lifecycle.claim(conversation.pk)
        commands.stop_turn(conversation, turn.pk)
        assert lifecycle.end_orphans(conversation.pk) == []
        expire(turn.pk)
        assert lifecycle.claim(conversation.pk) is None
        assert lifecycle.end_orphans(conversation.pk)[0].state == State.STOPPED

    def test_a_released_turn_is_taken_at_once(self, conversation):
        submit(conversation)
        lifecycle.claim(conversation.pk)
        assert lifecycle.release() == 1
        assert lifecycle.due() == [conversation.pk]
        assert lifecycle.claim(conversation.pk).attempt == 2

    def test_a_released_turn_that_was_asked_to_stop_does_not_run_again(
        self, conversation
    ):
        turn = submit(conversation).turn
        lifecycle.claim(conversation.pk)
        commands.stop_turn(conversation, turn.pk)
        lifecycle.release()
        assert lifecycle.claim(conversation.pk) is None
        assert lifecycle.end_orphans(conversation.pk)[0].state == State.STOPPED

    def test_a_process_hands_back_only_its_own_turns(self, conversation):
        turn = submit(conversation).turn
        lifecycle.claim(conversation.pk)
        Turn.objects.filter(pk=turn.pk).update(owner="f" * 36)
        assert lifecycle.release() == 0


class TestFinish:
    def test_finish_stores_reply_and_bill_together(self, conversation):
        submit(conversation)
        turn = answer(conversation, "Hi!", tokens_input=20, tokens_output=2)
        assert (turn.state, turn.reply.seq, turn.reply.text) == ("done", 2, "Hi!")
        call = ModelCall.objects.get()
        assert (call.message, call.tokens_input) == (turn.reply, 20)
        assert rebuilding.verify_context(call)

    def test_a_failed_turn_without_text_gives_its_number_back(self, conversation):
        submit(conversation, "a")
        turn = answer(conversation, "", State.FAILED, error="unavailable")
        assert turn.reply is None
        assert submit(conversation, "b").message.seq == 2

    def test_text_that_an_earlier_attempt_saved_is_kept(self, conversation):
        message = submit(conversation).message
        built = context.build_request_context(conversation, newest=message)
        first = lifecycle.begin(lifecycle.claim(conversation.pk), built, "m")
        lifecycle.checkpoint(first, "Once upon")
        expire(first.row_id)
        turn = answer(conversation, "", State.FAILED, error="unavailable")
        assert turn.reply.text == "Once upon"
        assert turn.reply.model_calls.get().pk == first.call_id
        assert ModelCall.objects.exclude(pk=first.call_id).get().error == "unavailable"

    def test_finish_calibrates_the_token_estimate(self, conversation):
        submit(conversation)
        answer(conversation, tokens_input=2000)
        conversation.refresh_from_db()
        assert context.build_request_context(conversation).tokens > 1500

    def test_finish_marks_a_compaction_only_when_one_is_due(self, alice):
        policy = {"trigger": ["turns", 2], "keep": ["turns", 1]}
        conversation = transcript.create_conversation(alice, policy=policy)
        ended = []
        for text in "ab":
            submit(conversation, text)
            turn = answer(conversation, tokens_input=40)
            conversation.refresh_from_db()
            is_marked = conversation.compaction_due_at is not None
            ended.append((turn.is_compaction_due, is_marked))
        assert ended == [(False, False), (True, True)]

    def test_lock_finds_the_first_message_of_another_open_turn(self, conversation):
        submit(conversation, "a")
        claim = lifecycle.claim(conversation.pk)
        submit(conversation, "b")
        assert lifecycle.lock_held(claim).next_open == 3

    def test_a_second_call_finds_what_the_first_one_did(self, conversation):
        submit(conversation)
        claim = lifecycle.claim(conversation.pk)
        first = lifecycle.finish(claim, lifecycle.TurnResult(State.DONE, "Hi!"))
        again = lifecycle.finish(claim, lifecycle.TurnResult(State.DONE, "Hi!"))
        assert (again, again.reply) == (first, first.reply)


class TestStop:
    def test_a_queued_turn_ends_at_once(self, conversation):
        submit(conversation, "a")
        queued = submit(conversation, "b").turn
        assert commands.stop_turn(conversation, queued.pk).state == State.STOPPED
        assert lifecycle.claim(conversation.pk).row_id != queued.pk

    def test_a_running_turn_is_asked_and_keeps_its_text(self, conversation):
        turn = submit(conversation).turn
        claim = lifecycle.claim(conversation.pk)
        commands.stop_turn(conversation, turn.pk)
        assert lifecycle.checkpoint(claim, "So") is lifecycle.LeaseStatus.CANCELLED
        ended = lifecycle.finish(claim, lifecycle.TurnResult(State.STOPPED, "So"))
        assert (ended.state, ended.reply.text) == (State.STOPPED, "So")

    def test_a_finished_turn_stays_as_it_is(self, conversation):
        submit(conversation)
        turn = answer(conversation)
        assert commands.stop_turn(conversation, turn.pk).state == State.DONE

    def test_a_foreign_turn_is_not_found(self, conversation, bob):
        other = submit(transcript.create_conversation(bob)).turn
        with pytest.raises(CommandError) as refused:
            commands.stop_turn(conversation, other.pk)
        assert refused.value.code == "not_found"


class TestRetry:
    def test_retry_runs_again_and_supersedes_the_partial_reply(self, conversation):
        submit(conversation)
        turn = answer(conversation, "Half", State.TRUNCATED, error="length")
        commands.retry_turn(conversation, turn.pk)
        again = answer(conversation, "Whole")
        assert again.pk == turn.pk
        kept = conversation.messages.filter(superseded_at=None)
        assert list(kept.values_list("text", flat=True)) == ["Hello", "Whole"]
        assert conversation.messages.get(seq=2).text == "Half"

    def test_a_done_turn_cannot_be_retried(self, conversation):
        submit(conversation)
        turn = answer(conversation)
        with pytest.raises(CommandError) as refused:
            commands.retry_turn(conversation, turn.pk)
        assert refused.value.code == "not_retryable"

    def test_earlier_turn_cannot_be_retried(self, conversation):
        submit(conversation, "a")
        turn = answer(conversation, "", State.FAILED, error="timeout")
        submit(conversation, "b")
        with pytest.raises(CommandError) as refused:
            commands.retry_turn(conversation, turn.pk)
        assert refused.value.code == "not_latest"


class TestEdit:
    def test_edit_supersedes_the_message_and_all_after_it(self, conversation):
        submit(conversation, "a")
        answer(conversation, "A")
        submit(conversation, "b")
        answer(conversation, "B")
        sent = commands.edit_message(conversation, seq=3, text="b2", client_id="new")
        assert sent.message.seq == 5
        kept = conversation.messages.filter(superseded_at=None)
        assert list(kept.values_list("text", flat=True)) == ["a", "A", "b2"]

    def test_edit_makes_a_summary_of_the_message_stale(self, conversation):
        submit(conversation, "a")
        answer(conversation, "A")
        versions.append_version(
            conversation, first_seq=1, last_seq=2, text="v1", status="active"
        )
        commands.edit_message(conversation, seq=1, text="a2", client_id="new")
        assert versions.active_summaries(conversation) == []
        assert conversation.summaries.get().status == "stale"

    def test_the_same_edit_twice_is_one(self, conversation):
        submit(conversation, "a")
        answer(conversation)
        first = commands.edit_message(conversation, seq=1, text="b", client_id="new")
        again = commands.edit_message(conversation, seq=1, text="b", client_id="new")
        assert (again.created, again.message) == (False, first.message)

    @pytest.mark.parametrize("seq", [2, 9])
    def test_reply_or_missing_message_cannot_be_edited(self, conversation, seq):
        submit(conversation, "a")
        answer(conversation)
        with pytest.raises(CommandError) as refused:
            commands.edit_message(conversation, seq=seq, text="b", client_id="new")
        assert refused.value.code == "not_found"

    def test_edit_is_refused_while_a_reply_is_written(self, conversation):
        submit(conversation, "a")
        lifecycle.claim(conversation.pk)
        with pytest.raises(CommandError) as refused:
            commands.edit_message(conversation, seq=1, text="b", client_id="new")
        assert refused.value.code == "busy"


class TestDue:
    def test_queued_and_orphaned_conversations_are_due(self, alice):
        queued, running, orphaned, done = (
            transcript.create_conversation(alice) for _ in range(4)
        )
        for each in (queued, running, orphaned, done):
            submit(each)
        for each in (running, orphaned):
            lifecycle.claim(each.pk)
        expire(orphaned.turns.get().pk)
        answer(done)
        assert lifecycle.due() == [queued.pk, orphaned.pk]

    def test_a_turn_behind_a_running_one_is_not_due(self, conversation):
        submit(conversation, "a")
        submit(conversation, "b")
        lifecycle.claim(conversation.pk)
        assert lifecycle.due() == []


@pytest.mark.database("postgresql")
@pytest.mark.django_db(transaction=True)
def test_stopping_a_reply_that_is_just_ending_is_no_deadlock(alice):
    conversation = transcript.create_conversation(alice)
    submit(conversation)
    claim = lifecycle.claim(conversation.pk)

    def finish():
        try:
            return lifecycle.finish(claim, lifecycle.TurnResult(State.DONE, "Reply"))
        finally:
            connection.close()

    pool = ThreadPoolExecutor(1)
    with transaction.atomic():
        transcript.lock_for_update(conversation)
        ending = pool.submit(finish)
        wait_for(has_waiting_locks)
        Turn.objects.filter(pk=claim.row_id).update(cancel_requested_at=Now())
    assert ending.result().state == State.DONE


def has_waiting_locks():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return cursor.fetchone()[0]
