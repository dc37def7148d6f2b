"""A process is gone in the middle of a turn with tools, and the next one goes on by its
rows: no call that may have begun is begun again, unless that is the same as once.
"""

import asyncio
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db.models.functions import Now

from chatsite.features.tools import events as tool_events
from chatsite.features.tools.models import ToolCall
from chatsite.features.tools.tool_loop import answers, records
from chatsite.features.tools.tool_loop.answers import CallAnswer, NoRoomError
from chatsite.features.tools.tool_loop.call_requests import CallRequest
from chatsite.llm import dialects
from chatsite.protocol import events
from chatsite.turns import attempt, commands, lifecycle, runner
from chatsite.turns import audit as turn_audit
from chatsite.turns.models import Turn
from memory import actions, transcript
from memory.integrity import audit
from memory.leases import LeaseStatus
from memory.models import Conversation, Message
from memory.view import rebuilding
from tests.fakes import own_tools

from ...scenes import submit

pytestmark = pytest.mark.django_db(transaction=True)

State = ToolCall.State


@pytest.fixture
def conversation(alice, settings, upstream):
    settings.CHAT_MODEL = "ok"
    settings.TOOLS = own_tools.PATHS
    own_tools.begun.clear()
    made = transcript.create_conversation(alice)
    Conversation.objects.filter(pk=made.pk).update(tools=own_tools.NAMES)
    made.refresh_from_db()
    submit(made, "Do it.")
    return made


def ask(conversation, *names, text="Let me see."):
    """The claim of a process whose model has asked for these calls, and the calls."""
    claim = lifecycle.claim(conversation.pk)
    request = attempt.prepare_attempt(claim, tools=attempt.Tools())
    claim = lifecycle.begin(claim, request.built, "ok")
    result = lifecycle.TurnResult("done", text, tokens_input=40, tokens_output=9)
    wanted = [
        CallRequest(f"c{place}", name, {"city": "Rome"} if name == "look_up" else {})
        for place, name in enumerate(names)
    ]
    return records.ask(claim, result, wanted)


def lose(claim):
    """Kill its process: the lease ends without another write."""
    turn = Turn.objects.filter(pk=claim.row_id)
    turn.update(lease_until=Now() - timedelta(seconds=1))


async def go_on(conversation):
    """Do the work of another process."""
    runner.start_turns(conversation.pk)
    while tasks := [task for task in runner._tasks if not task.done()]:
        await asyncio.wait(tasks)
    return await sync_to_async(look)(conversation)


def look(conversation):
    assert [
        str(each) for each in (*turn_audit.check_turns(), *audit.check_memory())
    ] == []
    calls = ToolCall.objects.filter(conversation=conversation).order_by("pk")
    return Turn.objects.get().state, [call.state for call in calls]


@pytest.mark.parametrize(
    ("name", "state"), [("write_down", State.UNKNOWN), ("look_up", State.DONE)]
)
async def test_a_call_that_may_have_begun(conversation, upstream, name, state):
    def begin():
        claim, (call,) = ask(conversation, name)
        assert records.begin(claim, call.pk).state == State.RUNNING
        lose(claim)

    await sync_to_async(begin)()
    assert await go_on(conversation) == ("done", [state])
    assert own_tools.begun == []
    assert upstream.violations == []
    assert len(upstream.calls) == 1


async def test_calls_that_had_not_begun_are_run(conversation, upstream):
    def begin():
        claim, calls = ask(conversation, "look_up", "look_up")
        records.begin(claim, calls[0].pk)
        records.finish(claim, calls[0].pk, CallAnswer(State.DONE, "Warm"))
        lose(claim)

    await sync_to_async(begin)()
    assert await go_on(conversation) == ("done", [State.DONE, State.DONE])
    results = [each["content"] for each in upstream.calls[0].messages[-2:]]
    assert results == ["Warm", "Rome: 21 degrees"]


async def test_a_turn_that_was_given_up_answers_its_calls(conversation, monkeypatch):
    told = []

    async def publish(_, event):
        told.append((event.type, event.state))

    monkeypatch.setattr(events, "publish_event", publish)

    def begin():
        claim, calls = ask(conversation, "write_down", "look_up")
        records.begin(claim, calls[0].pk)
        Turn.objects.update(attempt=9)
        lose(claim)

    await sync_to_async(begin)()
    found = await go_on(conversation)
    assert found == ("interrupted", [State.UNKNOWN, State.CANCELLED])
    assert told[:3] == [
        ("tool", State.UNKNOWN),
        ("tool", State.CANCELLED),
        ("end", "interrupted"),
    ]


def test_process_that_lost_the_turn_writes_nothing(conversation):
    claim, calls = ask(conversation, "look_up", "look_up")
    records.begin(claim, calls[0].pk)
    lose(claim)
    other = lifecycle.claim(conversation.pk)
    assert records.begin(claim, calls[1].pk) is LeaseStatus.LOST
    assert records.finish(claim, calls[0].pk, CallAnswer(State.DONE, "Late")) is None
    assert records.settle(claim) is None
    assert records.wait(claim) is LeaseStatus.LOST
    assert not Message.objects.filter(text="Late").exists()
    settled = records.settle(other)
    assert [call.state for call in settled.still_open] == [State.ASKED, State.ASKED]
    assert settled.answered == []


def test_each_step_finds_what_it_did(conversation):
    """The answer of the database got lost, and the step is tried again."""
    claim = lifecycle.claim(conversation.pk)
    request = attempt.prepare_attempt(claim, tools=attempt.Tools())
    claim = lifecycle.begin(claim, request.built, "ok")
    result = lifecycle.TurnResult("done", "Let me see.")
    wanted = [CallRequest("a", "look_up", {"city": "Rome"})]
    following, (call,) = records.ask(claim, result, wanted)
    again, (same,) = records.ask(claim, result, wanted)
    assert (again, same) == (following, call)
    for _ in range(2):
        assert records.begin(following, call.pk).state == State.RUNNING
    for _ in range(2):
        done = records.finish(following, call.pk, CallAnswer(State.DONE, "Warm"))
        assert done.result.text == "Warm"
    assert conversation.messages.count() == 3
    assert conversation.model_calls.get().message == call.request


def test_every_request_is_paid_by_its_owner(conversation, settings, alice):
    settings.TOKENS_PER_DAY = 49
    claim, (call,) = ask(conversation, "look_up")
    assert alice.allowance.tokens_used == 49
    records.begin(claim, call.pk)
    records.finish(claim, call.pk, CallAnswer(State.DONE, "Warm"))
    refused = attempt.prepare_attempt(claim, tools=attempt.Tools())
    assert (refused.state, refused.error) == ("failed", "quota")


class TestNumbers:
    def test_a_message_behind_leaves_room(self, conversation):
        second = submit(conversation, "And then?")
        assert second.message.seq == 3 + answers.TOOL_ROOM
        assert second.turn.room == answers.TOOL_ROOM
        third = submit(conversation, "And then?", "third")
        assert third.message.seq == 2 * (2 + answers.TOOL_ROOM) + 1

    def test_room_is_zero_without_tools_or_an_open_turn(self, alice, conversation):
        plain = transcript.create_conversation(alice)
        found = [submit(plain, text).message.seq for text in "abc"]
        assert found == [1, 3, 5]
        assert commands.send_message(conversation, text="x", client_id="x").turn.room

    def test_a_message_sent_twice_gives_its_room_back(self, conversation):
        before = Conversation.objects.get(pk=conversation.pk).next_seq
        first = submit(conversation, "And then?", "same")
        again = submit(conversation, "And then?", "same")
        assert (again.message, again.created) == (first.message, False)
        after = Conversation.objects.get(pk=conversation.pk).next_seq
        assert after == before + answers.TOOL_ROOM + 2

    @pytest.mark.parametrize(("room", "count"), [(4, 3), (12, 9)])
    def test_a_reply_asks_for_as_many_calls_as_there_is_room_for(
        self, conversation, monkeypatch, room, count
    ):
        monkeypatch.setattr(answers, "TOOL_ROOM", room)
        behind = submit(conversation, "And then?").message
        claim, calls = ask(conversation, *["look_up"] * 9)
        assert len(calls) == count
        assert len(conversation.messages.get(seq=2).tool_calls) == count
        for call in calls:
            records.begin(claim, call.pk)
            records.finish(claim, call.pk, CallAnswer(State.DONE, "Warm"))
        settled = records.settle(claim)
        turn = lifecycle.finish(claim, lifecycle.TurnResult("done", "It is warm."))
        assert turn.reply.seq == count + 3 < behind.seq
        # One more call and its result would take two numbers before the reply's.
        assert settled.has_room is (behind.seq - turn.reply.seq > 2)
        assert [str(each) for each in turn_audit.check_turns()] == []

    def test_a_turn_without_room_stores_nothing(self, conversation):
        """The tools were taken away while it ran, and a message sent behind it."""
        Conversation.objects.filter(pk=conversation.pk).update(tools=[])
        conversation.refresh_from_db()
        submit(conversation, "And then?")
        with pytest.raises(NoRoomError):
            ask(conversation, "look_up")
        assert conversation.messages.count() == 2


class TestLateBetween:
    @pytest.fixture
    def later(self, conversation):
        """The second turn, which a late result of the first one came into."""
        claim, (call,) = ask(conversation, "look_up")
        records.begin(claim, call.pk)
        records.finish(claim, call.pk, CallAnswer(State.DONE, "Later"))
        lifecycle.finish(claim, lifecycle.TurnResult("done", "Wait."))
        turn = submit(conversation, "And then?").turn
        late = transcript.append_result(
            conversation,
            seq=transcript.reserve_numbers(conversation, 1),
            call_id=call.call_id,
            text="Here it is.",
            late_for=call.request.seq,
        )
        ToolCall.objects.update(late_result=late)
        claim, _ = ask(conversation, "look_up")
        lifecycle.finish(claim, lifecycle.TurnResult("done", "Well."))
        return turn

    def test_regeneration_leaves_messages_of_other_turns(self, conversation, later):
        commands.regenerate_reply(conversation, later.pk)
        gone = conversation.messages.exclude(superseded_at=None).order_by("seq")
        assert [row.seq for row in gone] == [6, 8, 9]
        assert conversation.messages.get(seq=7).late_for == 2
        assert [str(each) for each in turn_audit.check_turns()] == []

    def test_edit_leaves_messages_of_other_turns(self, conversation, later):
        commands.edit_message(conversation, seq=5, text="Or this?", client_id="edited")
        gone = conversation.messages.exclude(superseded_at=None).order_by("seq")
        assert [row.seq for row in gone] == [5, 6, 8, 9]


class TestEnds:
    def test_stop_answers_what_waits(self, conversation):
        claim, _ = ask(conversation, "write_down")
        ToolCall.objects.update(state=State.WAITING)
        assert records.wait(claim) is LeaseStatus.KEPT
        turn = commands.stop_turn(conversation, claim.row_id)
        assert look(conversation) == ("stopped", [State.CANCELLED])
        assert turn.reply is None
        assert conversation.messages.get(seq=3).text == answers.NOT_RUN

    def test_consent_lets_it_go_on_as_a_first_attempt(self, conversation):
        claim, _ = ask(conversation, "write_down")
        ToolCall.objects.update(state=State.WAITING)
        records.wait(claim)
        assert lifecycle.claim(conversation.pk) is None
        ToolCall.objects.update(state=State.ASKED, allowed=True)
        assert answers.resume(Turn.objects.all()) == 1
        turn = Turn.objects.get()
        assert turn.attempt == turn.attempts_before
        assert lifecycle.claim(conversation.pk).row_id == claim.row_id

    def test_a_wait_whose_answer_has_come_is_none(self, conversation):
        claim, _ = ask(conversation, "write_down")
        assert records.wait(claim) is None

    def test_the_message_is_deleted(self, conversation):
        claim, (call,) = ask(conversation, "look_up")
        records.begin(claim, call.pk)
        actions.delete_message(conversation, 1)
        refused = attempt.prepare_attempt(claim, tools=attempt.Tools())
        assert refused.error == commands.MESSAGE_DELETED
        lifecycle.finish(claim, refused)
        assert ToolCall.objects.get().state == State.CANCELLED


class TestAudit:
    @pytest.fixture
    def call(self, conversation):
        claim, (call,) = ask(conversation, "look_up")
        records.begin(claim, call.pk)
        call = records.finish(claim, call.pk, CallAnswer(State.DONE, "Warm"))
        lifecycle.finish(claim, lifecycle.TurnResult("done", "It is warm."))
        assert found_by_audit() == set()
        return call

    def test_a_call_that_stayed_open(self, call):
        ToolCall.objects.update(state=State.ASKED)
        assert found_by_audit() == {"R4.call"}

    def test_a_call_that_lost_its_result(self, call):
        ToolCall.objects.update(result=None)
        assert found_by_audit() == {"R4.result", "R6.result"}

    def test_a_call_with_the_result_of_another(self, call):
        ToolCall.objects.update(call_id="another")
        assert found_by_audit() == {"R6.call"}

    def test_a_call_that_is_seen_without_its_result(self, call):
        Message.objects.filter(pk=call.result_id).update(excluded_at=Now())
        assert found_by_audit() == {"R6.torn"}


def found_by_audit():
    return {each.code for each in turn_audit.check_turns()}


def test_the_event_of_a_call_says_what_the_row_does(conversation):
    claim, (call,) = ask(conversation, "look_up")
    told = tool_events.ToolEvent.from_call(call)
    assert (told.state, told.seq, told.result_seq) == ("asked", 2, None)
    records.begin(claim, call.pk)
    done = records.finish(claim, call.pk, CallAnswer(State.DONE, "Warm"))
    assert tool_events.ToolEvent.from_call(done).result_seq == 3


def test_the_context_holds_the_steps(conversation):
    claim, (call,) = ask(conversation, "look_up")
    records.begin(claim, call.pk)
    records.finish(claim, call.pk, CallAnswer(State.DONE, "Warm"))
    dialect = dialects.find_dialect("ok")
    request = attempt.prepare_attempt(claim, None, dialect, attempt.Tools())
    assert request.built.refs["steps"] == [[2, 3]]
    call = conversation.model_calls.get()
    assert rebuilding.verify_context(call)
