"""The consent of a user: for exactly one call, once, in time, in any process."""

import pytest
from django.db.models.functions import Now

from chatsite.features.tools import consent
from chatsite.features.tools.models import ToolCall
from chatsite.features.tools.tool_loop import answers, records
from chatsite.protocol.errors import CommandError
from chatsite.turns import commands, lifecycle, requests
from chatsite.turns.models import Turn
from memory import context, transcript
from memory.engine.tools.rounds import NO_RESULT
from memory.models import Conversation
from tests.fakes import own_tools

from ...scenes import signed_in, submit, url, violations
from . import calls
from .calls import ask, claim_next, wait

pytestmark = pytest.mark.django_db
State = ToolCall.State
SEND = ("send_mail", {"to": "bob@example.org"})


@pytest.fixture
def conversation(alice, settings):
    settings.TOOLS = own_tools.PATHS
    return calls.create(alice)


@pytest.fixture
def waiting(conversation):
    """A call that waits for consent, and its turn with it."""
    claim, (call,) = ask(conversation, SEND)
    (call,) = wait(claim, call)
    assert (call.state, call.turn.state) == (State.WAITING, Turn.State.WAITING)
    return call


def answer(call, *, allowed=True, **values):
    values = {"digest": call.digest, "reason": "", **values}
    user = call.conversation.owner
    return consent.answer(call.conversation, call.pk, user, allowed=allowed, **values)


def again(call):
    return ToolCall.objects.select_related("turn", "result").get(pk=call.pk)


def refused(call, code, **values):
    before = again(call)
    with pytest.raises(CommandError) as error:
        answer(call, **values)
    assert error.value.code == code
    after = again(call)
    assert (after.state, after.allowed) == (before.state, before.allowed)


def test_a_yes_lets_any_process_run_it_once(waiting, alice):
    call = answer(waiting)
    assert (call.state, call.allowed, call.answered_by) == (State.ASKED, True, alice)
    claim = lifecycle.claim(call.conversation_id)
    call = records.begin(claim, call.pk)
    assert call.state == State.RUNNING
    records.finish(claim, call.pk, answers.CallAnswer(State.DONE, "Sent."))
    refused(waiting, "answered", allowed=False)
    assert records.begin(claim, call.pk).state == State.DONE
    assert violations() == []


def test_refusal_reaches_the_model_with_its_reason(waiting):
    call = answer(waiting, allowed=False, reason=" Not to Bob. ")
    assert (call.state, call.allowed, call.error) == (State.CANCELLED, False, "refused")
    assert call.reason == "Not to Bob."
    claim = claim_next(call.conversation)
    built = claim.view.context.messages
    assert built[-1].content == f"{consent.REFUSED} The user's reason: Not to Bob."
    assert claim.row_id == call.turn_id


def test_the_wait_is_no_attempt_and_not_the_tools_time(waiting):
    call = answer(waiting)
    assert call.started_at is None
    turn = Turn.objects.get()
    assert (turn.state, turn.attempts_before) == (Turn.State.QUEUED, turn.attempt)


def test_the_turn_goes_on_once_no_call_waits(conversation):
    claim, found = ask(conversation, SEND, ("send_mail", {"to": "carol"}))
    first, second = wait(claim, *found)
    answer(first)
    assert again(second).turn.state == Turn.State.WAITING
    answer(second, allowed=False)
    assert again(second).turn.state == Turn.State.QUEUED


def test_an_answer_while_the_turn_still_runs_leaves_it_running(conversation):
    claim, (call,) = ask(conversation, SEND)
    call = records.begin(claim, call.pk)
    answer(call)
    assert again(call).turn.state == Turn.State.RUNNING
    assert records.wait(claim) is None


class TestExactlyThisCall:
    def test_the_same_answer_twice_is_one(self, waiting):
        first = answer(waiting)
        assert answer(waiting).answered_at == first.answered_at

    def test_other_digest_is_refused(self, waiting):
        refused(waiting, "changed", digest="0" * 64)

    def test_a_row_that_was_changed_since_is_refused(self, waiting):
        ToolCall.objects.filter(pk=waiting.pk).update(arguments={"to": "eve"})
        refused(waiting, "changed")

    def test_arguments_changed_after_the_yes_do_not_run(self, waiting):
        answer(waiting)
        ToolCall.objects.filter(pk=waiting.pk).update(arguments={"to": "eve"})
        claim = lifecycle.claim(waiting.conversation_id)
        assert records.begin(claim, waiting.pk).state == State.WAITING

    def test_a_tool_that_changed_after_the_yes_asks_again(self, waiting, monkeypatch):
        answer(waiting)
        monkeypatch.setattr(own_tools.send_mail.tool, "description", "Send to all.")
        claim = lifecycle.claim(waiting.conversation_id)
        call = records.begin(claim, waiting.pk)
        assert (call.state, call.allowed, call.answered_by) == (
            State.WAITING,
            None,
            None,
        )

    def test_other_conversation_does_not_know_the_call(self, waiting, alice):
        other = transcript.create_conversation(alice)
        with pytest.raises(CommandError) as error:
            consent.answer(
                other, waiting.pk, alice, allowed=True, digest=waiting.digest
            )
        assert error.value.code == "not_found"

    def test_a_stopped_turn_takes_no_answer(self, waiting):
        commands.stop_turn(waiting.conversation, waiting.turn_id)
        refused(waiting, "not_waiting")
        assert again(waiting).result.text.startswith("No result")

    @pytest.mark.parametrize(
        ("reason", "code"), [("x" * 501, "too_long"), ("a\0b", "bad_text")]
    )
    def test_a_bad_reason_is_refused(self, waiting, reason, code):
        refused(waiting, code, allowed=False, reason=reason)


class TestExpiry:
    def late(self, call):
        ToolCall.objects.filter(pk=call.pk).update(expires_at=Now())

    def test_a_late_answer_is_refused(self, waiting):
        self.late(waiting)
        refused(waiting, "expired")

    def test_a_yes_does_not_last_forever(self, waiting):
        answer(waiting)
        self.late(waiting)
        claim = lifecycle.claim(waiting.conversation_id)
        assert records.begin(claim, waiting.pk).state == State.WAITING

    def test_unanswered_question_expires_and_the_turn_goes_on(self, waiting):
        assert consent.expire() == []
        self.late(waiting)
        (call,) = consent.expire()
        assert (call.state, call.error, call.allowed) == (
            State.CANCELLED,
            "consent_expired",
            None,
        )
        assert again(call).turn.state == Turn.State.QUEUED
        assert call.result.text == consent.EXPIRED
        assert consent.expire() == []

    def test_many_of_one_do_not_delay_those_of_another(self, conversation, bob):
        waiting = []
        for made, count in (
            (conversation, consent.EXPIRED_AT_ONCE + 2),
            (calls.create(bob), 1),
        ):
            claim, found = ask(made, *[SEND] * count)
            waiting += wait(claim, *found)
        for call in waiting:
            self.late(call)
        expired = [call.pk for call in consent.expire()]
        assert waiting[-1].pk in expired
        assert len(expired) == consent.EXPIRED_AT_ONCE
        assert len(consent.expire()) == 3
        assert violations() == []


class TestWithoutASocket:
    def post(self, call, **values):
        target = f"{url('detail', call.conversation)}calls/{call.pk}/answer/"
        client = signed_in(call.conversation.owner)
        return client.post(target, {"digest": call.digest, **values})

    def test_a_form_answers(self, waiting):
        assert self.post(waiting, allow="true").status_code == 302
        assert again(waiting).allowed is True

    def test_a_form_says_why_not(self, waiting):
        self.post(waiting, allow="false", reason="No.")
        assert again(waiting).reason == "No."
        assert self.post(waiting, allow="true").status_code == 409
        assert self.post(waiting, allow="maybe").status_code == 409


def test_the_view_shows_what_its_turn_has_done_so_far(waiting):
    built = requests.next_turn(waiting.conversation)
    assert [each["role"] for each in built.wire] == [
        *("system", "user", "assistant", "tool")
    ]
    assert built.wire[-1]["content"] == NO_RESULT
    assert built.refs["steps"] == [[waiting.request.seq] * 2]


def test_messages_sent_meanwhile_wait_behind_it(waiting):
    behind = submit(waiting.conversation, "Still there?")
    assert behind.position == 1
    answer(waiting, allowed=False)
    conversation = Conversation.objects.get(pk=waiting.conversation_id)
    claim = claim_next(conversation)
    assert claim.row_id == waiting.turn_id
    calls.reply(conversation, claim)
    claim = claim_next(conversation)
    assert claim.row_id == behind.turn.pk
    assert [each.type for each in claim.view.context.messages[1:]] == [
        *("human", "ai", "tool", "ai", "human")
    ]
    assert violations() == []
    assert context.read_steps(behind.message) == []
