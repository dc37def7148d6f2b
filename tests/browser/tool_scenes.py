"""Conversations with calls of tools, written into the database of a site."""

from datetime import timedelta

from django.utils import timezone

from chatsite.features.tools.models import ToolCall
from chatsite.turns.models import Turn
from memory import transcript
from tests.chatsite.scenes import Use, arrive, talk_in_turns, use_tools

from .written import find_owner

HOSTILE = '<img src=x onerror="alert(1)"> \u202egnp.exe'


def make_long():
    """The path of one whose first turn has a late call and is not on the page at
    first."""
    owner = find_owner()
    made = transcript.create_conversation(owner, title="A late call", model="demo")
    use_tools(made, "Weigh the parcel", Use(name="weigh", state="late"))
    talk_in_turns(made, *(f"Meanwhile {number}" for number in range(21)))
    return f"/c/{made.uuid}/"


def make():
    """One with calls in every state: its path, and the key of the call that waits."""
    owner = find_owner()
    made = transcript.create_conversation(owner, title="Calls of tools", model="demo")
    soon = timezone.now() + timedelta(hours=1)
    answered = {"answered_at": timezone.now(), "answered_by": owner}
    use_tools(
        made,
        "What was our budget, and near which river do we stay?",
        Use(columns={**answered, "allowed": True}),
        Use(
            name="read_messages",
            arguments={"first": 1, "last": 400},
            result="#1 You: Hi! I'm Lance.\n" * 2_000,
            sent="#1 You: Hi! I'm Lance.\n" * 8 + "[shortened]",
        ),
        Use(
            name="fetch_page",
            arguments={"url": "https://example.org/" + "long/" * 60},
            state="failed",
            result=HOSTILE,
        ),
        asked="I look that up in our conversation.",
        reply="The budget is 3,200 euros, near the Kamo river.",
    )
    late = {"deadline_at": soon}
    turn = use_tools(
        made,
        "Remind me to book, and mail Mia.",
        Use(
            name="remind_me",
            arguments={"in": "2 hours", "text": "订酒店"},
            state="late",
            result="The result will come later (call c2-0).",
            columns=late,
        ),
        Use(
            name="send_mail",
            arguments={"to": "mia@example.org"},
            state="cancelled",
            result="The person did not allow this call: not yet.",
            columns={**answered, "allowed": False, "reason": "Not yet, please."},
        ),
        Use(name="restart_server", arguments={}, state="unknown", result=None),
        reply="I will remind you. I have not written to Mia.",
    )
    talk_in_turns(made, "Thank you")
    done = use_tools(made, "Weigh the parcel", Use(name="weigh", state="late"))
    arrive(done.tool_calls.get(), "1,200 g")
    uses = [Use(state="done"), Use(name="calculate", state="running", result=None)]
    uses.append(Use(name="current_time", arguments={}, state="asked", result=None))
    uses.append(
        Use(
            name="delete_file",
            arguments={"path": "/srv/report\u202egnp.exe", "force": True},
            state="waiting",
            result=None,
            columns={"expires_at": soon},
        )
    )
    turn = use_tools(
        made, "Clean up, please", *uses, reply=None, state=Turn.State.WAITING
    )
    waiting = turn.tool_calls.get(state=ToolCall.State.WAITING)
    return f"/c/{made.uuid}/", waiting.pk
