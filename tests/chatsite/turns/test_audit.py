"""The audit of the turns: one planted violation for every kind it knows."""

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.db.models.functions import Now

from chatsite.turns import audit, commands, lifecycle
from chatsite.turns.copying import copies
from chatsite.turns.models import Turn
from memory import context, transcript
from memory.models import Conversation, Message

State = Turn.State


@pytest.fixture
def conversation(alice):
    return transcript.create_conversation(alice)


def send(conversation, text="Hello"):
    client_id = f"id-{conversation.messages.count()}"
    return commands.submit_message(conversation, text=text, client_id=client_id)


def answer(conversation, state=State.DONE, text="Reply"):
    message = send(conversation).message
    claim = lifecycle.claim(conversation.pk)
    built = context.build_request_context(conversation, newest=message, model="m")
    lifecycle.begin(claim, built, "m")
    return lifecycle.finish(claim, lifecycle.TurnResult(state, text))


def found():
    return {violation.code for violation in audit.check_turns()}


def plant(turn, **values):
    Turn.objects.filter(pk=turn.pk).update(**values)


def let_time_pass(conversation, minutes=5):
    """Let time pass as if the conversation had not been touched for a while."""
    span = timedelta(minutes=minutes)
    conversation.turns.update(finished_at=Now() - span)
    Conversation.objects.filter(pk=conversation.pk).update(updated_at=Now() - span)


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (State.DONE, "Reply"),
        (State.STOPPED, ""),
        (State.STOPPED, "Half a re"),
        (State.FAILED, ""),
        (State.TRUNCATED, "Half a re"),
    ],
)
def test_audit_finds_nothing_after_any_end(conversation, state, text):
    answer(conversation, state, text)
    let_time_pass(conversation)
    assert list(audit.check_turns()) == []


def test_audit_finds_nothing_after_retry_and_edit(conversation):
    failed = answer(conversation, State.FAILED, "Half")
    commands.retry_turn(conversation, failed.pk)
    claim = lifecycle.claim(conversation.pk)
    lifecycle.finish(claim, lifecycle.TurnResult(State.DONE, "Whole"))
    commands.edit_message(conversation, seq=1, text="Other words", client_id="edited")
    assert list(audit.check_turns()) == []


def test_audit_finds_nothing_while_a_reply_is_written(conversation):
    send(conversation)
    lifecycle.claim(conversation.pk)
    send(conversation)
    assert list(audit.check_turns()) == []


def test_two_running_turns_are_found(conversation):
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("DROP INDEX one_running_turn")
    send(conversation)
    lifecycle.claim(conversation.pk)
    second = send(conversation).turn
    plant(second, state=State.RUNNING, lease_until=Now() + timedelta(minutes=1))
    (violation,) = audit.check_turns()
    assert violation.code == "R3"
    assert violation.conversation_id == conversation.pk


@pytest.mark.parametrize("ago", [timedelta(minutes=5), None])
def test_running_turn_that_was_not_swept_is_found(conversation, ago):
    turn = send(conversation).turn
    lifecycle.claim(conversation.pk)
    plant(turn, lease_until=Now() - ago if ago else None)
    assert found() == {"R4.lease"}


def test_lease_that_ended_less_than_a_sweep_ago_is_accepted(conversation, settings):
    turn = send(conversation).turn
    lifecycle.claim(conversation.pk)
    plant(turn, lease_until=Now() - timedelta(seconds=settings.TURN_LEASE_SECONDS))
    assert list(audit.check_turns()) == []


def test_queued_turn_that_no_process_takes_is_found(conversation):
    send(conversation)
    let_time_pass(conversation)
    assert found() == {"R4.queued"}


def test_turn_queued_behind_a_long_one_is_accepted(conversation):
    send(conversation)
    lifecycle.claim(conversation.pk)
    send(conversation)
    let_time_pass(conversation)
    assert list(audit.check_turns()) == []


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"state": "odd"}, "R4.state"),
        ({"finished_at": None}, "R4.time"),
        ({"reply": None, "text": ""}, "R4.no_reply"),
        ({"reply": None}, "R5.lost"),
        ({"text": "Repl"}, "R5.text"),
        ({"reply_seq": 7}, "R6.reply_seq"),
        ({"state": State.QUEUED}, "R4.early"),
    ],
)
def test_turn_that_ended_wrong_is_found(conversation, values, code):
    turn = answer(conversation)
    plant(turn, **values)
    assert code in found()


def test_message_without_a_turn_is_found(conversation):
    answer(conversation).delete()
    assert found() == {"R4.no_turn", "R2.reply"}


def test_message_with_two_turns_is_found(conversation):
    turn = answer(conversation)
    Turn.objects.create(
        conversation=conversation, user_message=turn.user_message, reply_seq=3
    )
    assert found() == {"R2.turns"}


def test_second_reply_is_found(conversation):
    answer(conversation)
    send(conversation)
    Message.objects.create(
        conversation=conversation, seq=4, role="assistant", text="Twice", tokens=1
    )
    assert found() == {"R2.reply"}


def test_turn_across_conversations_is_found(conversation, bob):
    turn = answer(conversation)
    plant(turn, conversation=transcript.create_conversation(bob))
    assert found() == {"R6.foreign"}


class TestMissing:
    def test_numbers_of_turns_without_a_reply_are_accepted(self, conversation):
        answer(conversation)
        for n in range(2):
            send(conversation, f"queued {n}")
        first = conversation.turns.filter(state=State.QUEUED).first()
        commands.stop_turn(conversation, first.pk)
        assert found() == set()
        assert conversation.messages.filter(seq=4).exists() is False

    def test_removed_messages_are_found(self, conversation):
        for _ in range(3):
            answer(conversation)
        remove(conversation, 3, 4)
        (violation,) = audit.find_missing_messages()
        assert str(violation).endswith("2 messages are gone between #3 and #4")

    def test_removed_newest_messages_are_found(self, conversation):
        for _ in range(2):
            answer(conversation)
        remove(conversation, 1, 2, 3, 4)
        (violation,) = audit.find_missing_messages()
        assert str(violation).endswith("4 messages are gone between #1 and #4")

    def test_number_of_a_retried_empty_reply_is_accepted(self, conversation):
        send(conversation)
        claim = lifecycle.claim(conversation.pk)
        # A late result takes the next number meanwhile.
        seq = transcript.reserve_numbers(conversation, 1)
        Message.objects.create(
            conversation=conversation, seq=seq, role="tool", text="Late", tokens=1
        )
        turn = lifecycle.finish(claim, lifecycle.TurnResult(State.FAILED, ""))
        commands.retry_turn(conversation, turn.pk)
        assert list(audit.find_missing_messages()) == []

    def test_numbers_without_messages_in_a_branch_are_accepted(self, conversation):
        answer(conversation, State.FAILED, "")
        send(conversation)
        answer(conversation)
        made = copies.branch_conversation(
            conversation, conversation.messages.last().seq
        )
        answer(made)
        assert list(audit.find_missing_messages()) == []


def remove(conversation, *seqs):
    """Delete the messages in SQL, with everything that refers to them."""
    wanted = conversation.messages.filter(seq__in=seqs)
    keys = list(wanted.values_list("pk", flat=True))
    QuerySet(Turn).filter(user_message__in=keys).delete()
    QuerySet(Message).filter(pk__in=keys).delete()
