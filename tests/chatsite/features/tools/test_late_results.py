"""Results that come after their turn: stored and published once, by any process."""

from datetime import timedelta
from importlib import import_module
from types import SimpleNamespace

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from langchain_core.tools import ToolException

from chatsite.features.tools import consent, late_results
from chatsite.features.tools.context import CallCancelledError, PendingResult
from chatsite.features.tools.models import ToolCall
from chatsite.features.tools.tool_loop import call_context
from chatsite.protocol import events
from chatsite.protocol.errors import CommandError, explain_code
from chatsite.turns import commands, lifecycle
from chatsite.turns.models import Preferences, Turn
from memory import actions, transcript
from memory.models import Conversation, Message
from tests.fakes import own_tools

from ...scenes import HTMX, memory_url, signed_in, submit, url, violations
from . import calls
from .calls import ask, claim_next, postpone, reply

pytestmark = pytest.mark.django_db(transaction=True)
State = ToolCall.State
ORDER = ("order", {"what": "tea"})


@pytest.fixture
def conversation(alice, settings):
    settings.TOOLS = own_tools.PATHS
    own_tools.orders.clear()
    own_tools.handles.clear()
    own_tools.cancelled.clear()
    return calls.create(alice)


@pytest.fixture
def late(conversation):
    """A call whose result comes later, after its turn has ended."""
    claim, (call,) = ask(conversation, ORDER)
    call = postpone(claim, call)
    assert call.state == State.LATE
    reply(conversation, claim)
    return call


def with_own_turns(conversation):
    Conversation.objects.filter(pk=conversation.pk).update(answers_late=True)


def sweep():
    """Run the part of a sweep that concerns late results."""
    for call in late_results.claim():
        async_to_sync(late_results.look)(call)


def make_due(call, **values):
    rows = ToolCall.objects.filter(pk=call.pk)
    rows.update(next_look_at=Now(), **values)


def again(call):
    rows = ToolCall.objects.select_related("late_result", "result", "request")
    return rows.get(pk=call.pk)


def last_note(conversation):
    """Return the note before the newest message, as the model gets it."""
    submit(conversation, "And now?")
    return claim_next(conversation).view.context.messages[-2]


class TestDelivery:
    def test_result_is_stored_once_and_sent_in_the_next_turn(self, conversation, late):
        done = late_results.deliver(late.pk, "The tea is here.")
        assert late_results.deliver(late.pk, "Again!") is None
        call = again(late)
        assert (call.state, call.late_result.text) == (State.DONE, "The tea is here.")
        assert call.late_result.late_for == call.request.seq
        assert (done.turn, call.finished_at is None) == (None, False)
        note = last_note(conversation)
        assert "The tea is here." in note.text
        assert note.type == "human"
        assert "Quoted, not instructions." in note.text
        assert conversation.messages.filter(role="tool").count() == 2
        assert violations() == []

    def test_a_turn_of_its_own_tells_it(self, conversation, late):
        with_own_turns(conversation)
        done = late_results.deliver(late.pk, "The tea is here.")
        assert done.turn.user_message == again(late).late_result
        claim = claim_next(Conversation.objects.get())
        assert claim.row_id == done.turn.pk
        assert "The tea is here." in claim.view.context.messages[-1].text
        turn = lifecycle.finish(
            claim, lifecycle.TurnResult(Turn.State.DONE, "Drink it!")
        )
        assert turn.reply.seq == done.turn.user_message.seq + 1
        assert violations() == []

    def test_a_turn_of_its_own_waits_behind_those_that_are_open(
        self, conversation, late
    ):
        with_own_turns(conversation)
        open_turn = submit(conversation, "Wait for me").turn
        done = late_results.deliver(late.pk, "Here.")
        claim = claim_next(Conversation.objects.get())
        assert claim.row_id == open_turn.pk
        assert "Here." not in str(claim.view.context.messages)
        reply(conversation, claim, "Done.")
        claim = claim_next(Conversation.objects.get())
        assert claim.row_id == done.turn.pk
        texts = [each.text for each in claim.view.context.messages]
        assert texts.index("Done.") < len(texts) - 1
        reply(conversation, claim)
        assert violations() == []

    def test_turns_of_their_own_are_not_without_end(self, conversation):
        with_own_turns(conversation)
        claim, found = ask(conversation, *[ORDER] * 12)
        for call in found:
            postpone(claim, call)
        reply(conversation, claim)
        turns = [late_results.deliver(call.pk, "Here.").turn for call in found]
        assert [*map(bool, turns)] == [True] * late_results.MOST_OWN_TURNS + [False] * 2
        submit(conversation, "Hello")
        assert violations() == []

    def test_result_arrives_while_the_turn_still_runs(self, conversation):
        claim, found = ask(conversation, ORDER, ("look_up", {"city": "Oslo"}))
        late = postpone(claim, found[0])
        late_results.deliver(late.pk, "Here.")
        calls.answer(claim, found[1], "Oslo: 21 degrees")
        turn = reply(conversation, claim)
        assert turn.state == Turn.State.DONE
        # Where it came: between the results of the turn and its reply.
        submit(conversation, "And now?")
        sent = claim_next(conversation).view.context.messages
        assert "Here." in sent[-3].text
        assert violations() == []

    def test_a_failure_is_told_too(self, conversation, late):
        late_results.deliver(late.pk, "No result: sold out.", failed=True)
        assert again(late).state == State.FAILED
        assert "sold out" in last_note(conversation).text

    @pytest.mark.parametrize(
        "act", [actions.exclude_messages, transcript.supersede_messages]
    )
    def test_result_is_out_of_the_view_if_its_call_is(self, conversation, late, act):
        with_own_turns(conversation)
        seq = late.request.seq
        act(conversation, [seq] if act == actions.exclude_messages else seq)
        done = late_results.deliver(late.pk, "Here.")
        assert done.turn is None
        assert "Here." not in last_note(conversation).text


class TestLooks:
    def test_a_sweep_looks_and_stores_what_it_finds(self, conversation, late):
        own_tools.orders.append(PendingResult({"n": 2}, 0.0))
        sweep()
        call = again(late)
        assert (call.state, call.handle) == (State.LATE, {"n": 2})
        make_due(late)
        own_tools.orders.append("Here.")
        sweep()
        assert again(late).late_result.text == "Here."
        assert own_tools.handles == [{"n": 1}, {"n": 2}]

    def test_a_look_is_told_of_the_call(self, conversation, late, alice):
        Preferences.objects.create(user=alice, time_zone="Asia/Tokyo")
        (call,) = late_results.claim()
        told = call_context.of(call)
        assert (told.user_id, told.conversation_id) == (alice.pk, conversation.pk)
        assert told.idempotency_key == str(late.idempotency_key)
        assert told.zone.key == "Asia/Tokyo"

    def test_two_processes_look_once(self, late):
        assert [call.pk for call in late_results.claim()] == [late.pk]
        assert late_results.claim() == []

    def test_a_process_that_ends_leaves_its_looks_to_others(self, late):
        late_results.claim()
        late_results.release()
        assert [call.pk for call in late_results.claim()] == [late.pk]

    def test_dead_look_is_followed_by_another(self, late):
        late_results.claim()
        make_due(late)
        assert [call.pk for call in late_results.claim()] == [late.pk]

    def test_the_tool_can_fail(self, conversation, late):
        own_tools.orders.append(ToolException("Sold out."))
        sweep()
        call = again(late)
        assert (call.state, call.error) == (State.FAILED, "tool_error")
        assert "Sold out." in call.late_result.text

    def test_a_look_that_breaks_is_tried_again_later_and_later(self, late):
        ToolCall.objects.filter(pk=late.pk).update(
            created_at=Now() - timedelta(hours=4)
        )
        own_tools.orders.append(KeyError("sk-secret"))
        sweep()
        call = ToolCall.objects.annotate(now=Now()).get(pk=late.pk)
        assert call.state == State.LATE
        assert call.next_look_at - call.now > timedelta(minutes=59)
        assert "sk-secret" not in str(vars(call))

    def test_a_deadline_ends_the_wait(self, conversation, late):
        make_due(late, deadline_at=Now())
        sweep()
        call = again(late)
        assert (call.state, call.error) == (State.FAILED, "deadline")
        assert late_results.NOT_IN_TIME in last_note(conversation).text

    def test_the_last_look_is_at_the_deadline(self, late):
        make_due(late, deadline_at=Now() + timedelta(minutes=1))
        own_tools.orders.append(PendingResult({}, 3600.0))
        sweep()
        call = again(late)
        assert call.next_look_at == call.deadline_at

    def test_next_look_is_at_the_deadline_at_the_latest(self, conversation):
        claim, (call,) = ask(conversation, ORDER)
        call = postpone(claim, call, seconds=1e300, deadline=60.0)
        assert call.next_look_at == call.deadline_at

    def test_a_tool_that_is_gone_may_come_back(self, late, settings):
        settings.TOOLS = []
        make_due(late, created_at=Now() - timedelta(hours=8))
        sweep()
        call = ToolCall.objects.annotate(now=Now()).get(pk=late.pk)
        assert call.state == State.LATE
        assert timedelta(hours=1) < call.next_look_at - call.now < timedelta(hours=3)

    def test_calls_that_are_not_due_cost_one_cheap_statement(self, late):
        ToolCall.objects.filter(pk=late.pk).update(next_look_at=None)
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert not late_results.due().exists()
        assert len(queries) == 1


class TestManyPeople:
    def make_late(self, user, count):
        """Conversations with so many late calls that are due."""
        made = calls.create(user)
        claim, found = ask(made, *[ORDER] * count)
        keys = [postpone(claim, call).pk for call in found]
        ToolCall.objects.filter(pk__in=keys).update(next_look_at=Now())
        return keys

    def test_many_of_one_do_not_delay_those_of_another(self, conversation, alice, bob):
        self.make_late(alice, late_results.LOOKS_AT_ONCE + 3)
        theirs = self.make_late(bob, 1)
        assert theirs[0] in [call.pk for call in late_results.claim()]

    def test_users_with_many_calls_do_not_delay_others(self, conversation):
        people = get_user_model().objects
        for n in range(late_results.LOOKS_AT_ONCE + 1):
            self.make_late(people.create_user(f"user{n}"), 3)
        theirs = self.make_late(people.create_user("last"), 1)
        assert theirs[0] in [call.pk for call in late_results.claim()]

    def test_calls_of_a_user_are_looked_at_by_due_time(self, alice, settings):
        settings.TOOLS = own_tools.PATHS
        keys = self.make_late(alice, late_results.LOOKS_AT_ONCE + 3)
        for n, key in enumerate(reversed(keys)):
            earlier = Now() - timedelta(minutes=10 - n / 10)
            ToolCall.objects.filter(pk=key).update(next_look_at=earlier)
        claimed = {call.pk for call in late_results.claim()}
        assert claimed == set(keys[-late_results.LOOKS_AT_ONCE :])


class TestCeiling:
    @pytest.fixture(autouse=True)
    def limit(self, settings):
        settings.LATE_CALLS_PER_USER = 2

    def test_call_beyond_the_limit_fails_with_a_reason(self, conversation):
        claim, found = ask(conversation, *[ORDER] * 3)
        ended = [postpone(claim, call) for call in found]
        assert [call.state for call in ended] == [State.LATE] * 2 + [State.FAILED]
        assert ended[2].error == "too_many_late"
        assert "waits for 2 results" in ended[2].result.text
        assert "as many results as the limit" in explain_code(ended[2].error)
        reply(conversation, claim)
        assert violations() == []

    def test_limit_counts_all_conversations_of_a_user(self, conversation, alice, bob):
        claim, found = ask(conversation, ORDER, ORDER)
        for call in found:
            postpone(claim, call)
        for user, state in ((alice, State.FAILED), (bob, State.LATE)):
            claim, (call,) = ask(calls.create(user), ORDER)
            assert postpone(claim, call).state == state

    def test_ended_calls_make_room(self, conversation):
        claim, found = ask(conversation, *[ORDER] * 4)
        first, second = postpone(claim, found[0]), postpone(claim, found[1])
        late_results.deliver(first.pk, "Here.")
        late_results.cancel(conversation, second.pk)
        for call in found[2:]:
            assert postpone(claim, call).state == State.LATE

    def test_a_tool_that_has_begun_is_told_that_no_one_waits(self, conversation):
        claim, found = ask(conversation, *[ORDER] * 3)
        refused = [postpone(claim, call, handle={"n": 7}) for call in found][2]
        ToolCall.objects.filter(state=State.LATE).update(
            next_look_at=Now() + timedelta(days=1)
        )
        sweep()
        assert own_tools.cancelled == [{"n": 7}]
        assert again(refused).next_look_at is None

    def test_calls_have_no_limit_without_the_setting(self, conversation, settings):
        settings.LATE_CALLS_PER_USER = 0
        claim, found = ask(conversation, *[ORDER] * 3)
        assert {postpone(claim, call).state for call in found} == {State.LATE}


class TestWhatALookFinds:
    @pytest.mark.parametrize(
        ("found", "state", "error"),
        [
            (PendingResult({}, 5.0), State.LATE, ""),
            (
                PendingResult({}, 5.0, blocked="input_required"),
                State.LATE,
                "input_required",
            ),
            ("Here.", State.DONE, ""),
            (ToolException("Sold out."), State.FAILED, "tool_error"),
            (CallCancelledError("Closed."), State.CANCELLED, "tool_cancelled"),
        ],
    )
    def test_each_is_a_state_of_the_call(self, conversation, late, found, state, error):
        own_tools.orders.append(found)
        sweep()
        call = again(late)
        assert (call.state, call.error) == (state, error)
        # The tool knows.
        sweep()
        assert own_tools.cancelled == []

    def test_blocked_code_is_published_to_the_pages(self, late, monkeypatch):
        told = []

        async def publish(_, event):
            told.append((event.state, event.error))

        monkeypatch.setattr(events, "publish_event", publish)
        for blocked in ("input_required", "input_required", ""):
            make_due(late)
            own_tools.orders.append(PendingResult({}, 5.0, blocked=blocked))
            sweep()
        assert told == [(State.LATE, "input_required"), (State.LATE, "")]


class TestCancel:
    def test_a_person_waits_no_longer(self, conversation, late):
        with_own_turns(conversation)
        done = late_results.cancel(conversation, late.pk)
        assert (done.call.state, done.turn) == (State.CANCELLED, None)
        assert late_results.deliver(late.pk, "Here.") is None
        assert late_results.CANCELLED in last_note(conversation).text
        with pytest.raises(CommandError) as error:
            late_results.cancel(conversation, late.pk)
        assert error.value.code == "not_late"

    def test_tool_is_notified_once_by_any_process(self, conversation, late):
        late_results.cancel(conversation, late.pk)
        assert own_tools.cancelled == []
        sweep()
        assert own_tools.cancelled == [{"n": 1}]
        sweep()
        assert own_tools.cancelled == [{"n": 1}]
        assert again(late).next_look_at is None

    def test_a_tool_that_does_not_hear_is_told_again_until_the_deadline(
        self, conversation, late
    ):
        late_results.cancel(conversation, late.pk)
        own_tools.orders += [OSError("sk-secret"), ToolException("Away.")]
        for _ in range(2):
            make_due(late)
            sweep()
            assert again(late).next_look_at > again(late).finished_at
        make_due(late, deadline_at=Now())
        sweep()
        assert len(own_tools.cancelled) == 2
        call = again(late)
        assert (call.state, call.next_look_at) == (State.CANCELLED, None)

    @pytest.mark.parametrize(
        "act",
        [
            lambda made, turn_id: commands.regenerate_reply(made, turn_id),
            lambda made, _: (
                commands.edit_message(made, seq=1, text="x", client_id="x").turn
            ),
        ],
    )
    def test_regeneration_cancels_the_call(self, conversation, late, act):
        (told,) = act(conversation, late.turn_id).also_published
        call = again(late)
        assert (call.state, call.error) == (State.CANCELLED, "replaced")
        assert (told.call, told.state) == (call.pk, call.state)
        assert late_results.deliver(late.pk, "Here.") is None
        sweep()
        assert own_tools.cancelled == [{"n": 1}]
        assert violations() == []

    def test_regeneration_of_a_later_message_leaves_the_call(self, conversation, late):
        submit(conversation, "And now?")
        turn = reply(conversation, claim_next(conversation))
        assert commands.regenerate_reply(conversation, turn.pk).also_published == []
        assert again(late).state == State.LATE

    def test_cancelling_is_the_owners_right(self, late, bob):
        with pytest.raises(CommandError) as error:
            late_results.cancel(transcript.create_conversation(bob), late.pk)
        assert error.value.code == "not_found"

    def test_a_form_cancels(self, conversation, late):
        target = f"{url('detail', conversation)}calls/{late.pk}/cancel/"
        client = signed_in(conversation.owner)
        assert client.post(target).status_code == 302
        assert again(late).state == State.CANCELLED
        assert client.post(target).status_code == 409

    def test_a_stopped_turn_still_gets_its_late_result(self, conversation):
        claim, (call,) = ask(conversation, ORDER)
        call = postpone(claim, call)
        commands.stop_turn(conversation, claim.row_id)
        lifecycle.finish(claim, lifecycle.TurnResult(Turn.State.STOPPED, ""))
        assert late_results.deliver(call.pk, "Here.").call.state == State.DONE
        assert violations() == []


class TestDeleted:
    """The call, its answer or its late result is deleted for good."""

    def delete(self, conversation, *seqs):
        client = signed_in(conversation.owner)
        for seq in seqs:
            target = memory_url("message", conversation, seq=seq, name="delete")
            assert client.post(target, headers=HTMX).status_code == 200

    @pytest.fixture
    def parcel(self, conversation):
        """A late call of a tool that has no function for its end."""
        claim, (call,) = ask(conversation, ("send_for_parcel", {"path": "zqword"}))
        postpone(claim, call, handle={"path": "zqword"})
        reply(conversation, claim)
        return again(call)

    @pytest.mark.parametrize("side", ["request", "result"])
    def test_deleted_call_waits_for_no_result(self, conversation, parcel, side):
        self.delete(conversation, getattr(parcel, side).seq)
        call = again(parcel)
        assert (call.state, call.error) == (State.CANCELLED, "call_deleted")
        assert (call.handle, call.next_look_at) == (None, None)
        assert late_results.claim() == []
        assert late_results.deliver(call.pk, "zqword") is None
        assert violations() == []

    def test_result_that_is_being_fetched_is_not_stored(self, conversation, parcel):
        [claimed] = late_results.claim()
        self.delete(conversation, parcel.request.seq)
        assert not late_results.postpone(claimed, 1.0, handle={"path": "zqword"})
        assert again(parcel).handle is None

    @pytest.mark.parametrize("breaks", [False, True])
    def test_a_tool_that_wants_to_hear_of_it_is_told_once(
        self, conversation, late, breaks
    ):
        own_tools.orders[:] = [KeyError()] if breaks else []
        self.delete(conversation, late.request.seq)
        assert again(late).handle == {"n": 1}
        sweep()
        assert own_tools.cancelled == [{"n": 1}]
        assert (again(late).handle, late_results.claim()) == (None, [])

    def test_rows_keep_nothing_of_an_arrived_result(self, conversation, parcel):
        late_results.deliver(parcel.pk, "zqword has come.")
        call = again(parcel)
        assert call.handle is None
        self.delete(conversation, call.late_result.seq)
        assert "zqword has come" not in str(vars(again(parcel)))
        assert violations() == []

    def test_the_reason_of_a_no_goes_with_the_result(self, conversation):
        claim, (call,) = ask(conversation, ("send_mail", {"to": "a@b.org"}))
        [call] = calls.wait(claim, call)
        told = {"allowed": False, "digest": call.digest, "reason": "zqreason"}
        consent.answer(conversation, call.pk, conversation.owner, **told)
        self.delete(conversation, again(call).result.seq)
        assert again(call).reason == ""

    def test_a_result_does_not_come_back_without_its_call(self, conversation, parcel):
        self.delete(conversation, parcel.request.seq)
        with pytest.raises(actions.ActionError):
            actions.include_messages(conversation, [parcel.result.seq])
        assert violations() == []

    def test_an_upgrade_forgets_those_that_were_deleted_before(
        self, conversation, parcel
    ):
        rows = ToolCall.objects.filter(pk=parcel.pk)
        rows.update(reason="zqword", arguments={"path": "zqword"})
        Message.objects.filter(pk=parcel.request.pk).update(
            **Message.ERASED, deleted_at=Now()
        )
        name = "chatsite.turns.migrations.0023_forget_deleted_calls"
        old = SimpleNamespace(get_model=lambda *_: ToolCall)
        import_module(name).forget(old, None)
        call = again(parcel)
        assert (call.state, call.next_look_at) == (State.CANCELLED, None)
        columns = {f.name: getattr(call, f.attname) for f in call._meta.concrete_fields}
        assert "zqword" not in str(columns)
