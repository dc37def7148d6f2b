"""A change of a call reaches pages as its card, and JSON clients as an event."""

import json

import pytest

from chatsite.features.tools import events as tool_events
from chatsite.features.tools.models import ToolCall
from chatsite.features.unread.events import Unread
from chatsite.live import fragments
from chatsite.live.socket_client import HtmlView, JsonView, SocketClient
from chatsite.protocol import events
from chatsite.turns.models import Turn
from memory import transcript

from ...scenes import Use, arrive, talk_in_turns, use_tools

RUNNING = {"reply": None, "state": Turn.State.RUNNING}


@pytest.fixture
def conversation(alice):
    return transcript.create_conversation(alice)


def socket_of(conversation):
    owner = conversation.owner_id
    return SocketClient(owner, None, str(conversation.uuid), conversation.pk)


def heard(view, conversation, event):
    parts = view.draw_event(socket_of(conversation), event)
    return "".join(text for some in parts for text in some)


def change(call, **values):
    ToolCall.objects.filter(pk=call.pk).update(**values)
    rows = ToolCall.objects.select_related("request", "result", "late_result")
    return tool_events.ToolEvent.from_call(rows.get(pk=call.pk))


class TestPages:
    def test_a_new_call_draws_its_turn_and_a_change_only_its_card(self, conversation):
        view = HtmlView()
        talk_in_turns(conversation, "Hello")
        list(view.sync(socket_of(conversation)))
        uses = [Use(state="asked", result=None) for _ in range(3)]
        turn = use_tools(conversation, "Look", *uses, **RUNNING)
        first, second, _third = turn.tool_calls.order_by("place")
        html = heard(view, conversation, change(first, state="asked"))
        assert f'id="turn-{turn.pk}"' in html
        assert html.count('<details\n  class="tool-card') == 3
        html = heard(view, conversation, change(second, state="running"))
        assert html.count('<details\n  class="tool-card tool-running') == 1
        assert f'id="turn-{turn.pk}"' not in html
        assert 'id="call-' in html

    def test_a_late_result_draws_the_page_again(self, conversation):
        view = HtmlView()
        use = Use(state="late", result="It comes later")
        call = use_tools(conversation, "Remind me", use).tool_calls.get()
        talk_in_turns(conversation, "Meanwhile")
        list(view.sync(socket_of(conversation)))
        row = arrive(call, "Call Mia!")
        html = heard(view, conversation, change(call))
        assert '<div id="turns"' in html
        assert html.count("Call Mia!") == 2
        assert f'id="message-{row.seq}"' in html

    def test_a_call_of_another_conversation_is_not_shown(self, conversation, bob):
        call = use_tools(
            transcript.create_conversation(bob), "Look", Use()
        ).tool_calls.get()
        event = change(call)
        with pytest.raises(Turn.DoesNotExist):
            heard(HtmlView(), conversation, event)

    def test_a_question_is_told_to_those_who_listen(self, conversation):
        use = Use(name="send_mail", state="waiting", result=None)
        turn = use_tools(
            conversation, "Mail", use, reply=None, state=Turn.State.WAITING
        )
        told = fragments.status_of(change(turn.tool_calls.get()), conversation.pk)
        assert told == "send_mail is waiting for your answer"


class TestJson:
    def test_event_has_all_of_a_call(self, conversation):
        call = use_tools(conversation, "Look", Use()).tool_calls.get()
        [text] = JsonView().at_once(change(call))
        assert json.loads(text) == {
            "type": "tool",
            "turn": call.turn_id,
            "call": call.pk,
            "name": "search_transcript",
            "state": "done",
            "arguments": {"query": "budget"},
            "seq": 2,
            "result_seq": 3,
            "ms": 1200,
            "error": "",
            "digest": call.digest,
            "progress": None,
        }

    def test_a_frame_stays_small_whatever_the_arguments(self, conversation):
        use = Use(arguments={"text": "x" * 500_000})
        call = use_tools(conversation, "Look", use).tool_calls.get()
        [text] = JsonView().at_once(change(call))
        assert json.loads(text)["arguments"] is None
        assert len(text) < 1_000

    def test_other_processes_hear_the_same(self, conversation):
        event = change(use_tools(conversation, "Look", Use()).tool_calls.get())
        assert events.from_layer({"event": events.to_json(event)}) == event

    def test_a_sync_tells_of_what_goes_on(self, conversation):
        use_tools(conversation, "Done", Use())
        use_tools(conversation, "Later", Use(state="late"))
        use = Use(state="waiting", result=None)
        use_tools(conversation, "Mail", use, reply=None, state=Turn.State.WAITING)
        texts = [t for some in JsonView().sync(socket_of(conversation)) for t in some]
        told = [json.loads(text) for text in texts]
        states = [each["state"] for each in told if each["type"] == "tool"]
        assert states == ["late", "waiting"]


def test_events_are_known_to_their_receivers(conversation):
    calls = use_tools(conversation, "Look", Use()).tool_calls
    call = calls.select_related("request", "result", "late_result").get()
    samples = [
        tool_events.ToolEvent.from_call(call),
        Unread(str(conversation.uuid), 1, 4, "drink tea", "reply"),
    ]
    client = socket_of(conversation)
    for sample in samples:
        wire = {"type": "chat.event", "event": events.to_json(sample)}
        assert events.from_layer(wire) == sample
        assert JsonView().at_once(sample)
        view = HtmlView()
        list(view.sync(client))
        assert any(map(any, view.draw_event(client, sample)))
