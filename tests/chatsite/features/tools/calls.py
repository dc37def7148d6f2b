"""Turns with calls of tools, brought by hand to where a test begins; and single calls,
as the loop makes them.
"""

from langchain.tools import ToolRuntime

from chatsite.features.tools.context import CallContext, PendingResult
from chatsite.features.tools.models import ToolCall
from chatsite.features.tools.tool_loop import answers, records
from chatsite.features.tools.tool_loop.call_requests import CallRequest
from chatsite.turns import lifecycle
from chatsite.turns.models import Turn
from memory import context, transcript
from memory.models import Conversation
from tests.fakes import own_tools

from ...scenes import submit


def create(user, **values):
    """A conversation with the tools of the tests."""
    made = transcript.create_conversation(user)
    rows = Conversation.objects.filter(pk=made.pk)
    rows.update(tools=own_tools.NAMES, **values)
    return rows.get()


def claim_next(conversation):
    """The claim of the conversation's next turn, with a request that was recorded."""
    claim = lifecycle.claim(conversation.pk)
    newest = Turn.objects.get(pk=claim.row_id).user_message
    steps = context.read_steps(newest)
    built = context.build_request_context(
        conversation, newest=newest, steps=steps, model="m"
    )
    return lifecycle.begin(claim, built, "m")


def ask(conversation, *calls, text="Do it."):
    """The claim of a turn whose model asks for these calls (name, arguments), and the
    calls."""
    submit(conversation, text)
    asked = [
        CallRequest(f"call_{conversation.pk}_{place}", name, arguments)
        for place, (name, arguments) in enumerate(calls)
    ]
    claim = claim_next(conversation)
    return records.ask(claim, lifecycle.TurnResult(Turn.State.DONE, ""), asked)


def wait(claim, *calls):
    """Begin the calls, which have to wait for consent, and let the turn wait."""
    for call in calls:
        records.begin(claim, call.pk)
    records.wait(claim)
    return [answers.read(call.pk) for call in calls]


def postpone(claim, call, **options):
    """The call, whose tool answers that the result comes later."""
    records.begin(claim, call.pk)
    options = {"handle": {"n": 1}, "seconds": 0.0, **options}
    return records.finish(claim, call.pk, PendingResult(**options))


def answer(claim, call, content):
    """Run the call, whose tool brings this."""
    records.begin(claim, call.pk)
    done = answers.CallAnswer(ToolCall.State.DONE, content)
    return records.finish(claim, call.pk, done)


def reply(conversation, claim, text="I will tell you."):
    """Answer what is open, and end the turn with a reply."""
    newest = Turn.objects.get(pk=claim.row_id).user_message
    steps = context.read_steps(newest)
    built = context.build_request_context(
        Conversation.objects.get(pk=conversation.pk),
        newest=newest,
        steps=steps,
        model="m",
    )
    claim = lifecycle.begin(claim, built, "m")
    return lifecycle.finish(claim, lifecycle.TurnResult(Turn.State.DONE, text))


def context_of(conversation=None, *, asked_seq=None, **values):
    """Return the context of a call in the turn that answers message `asked_seq`, or the
    next one.
    """
    if conversation is not None:
        conversation.refresh_from_db()
        values = {"conversation_id": conversation.pk, **values}
        asked_seq = asked_seq or conversation.next_seq
    usual = {"conversation_id": 1, "turn_id": 1, "call_id": "call-1", "user_id": 1}
    usual |= {"idempotency_key": "key", "asked_seq": asked_seq or 1}
    return CallContext(**usual | values)


async def run(tool, call_context, **arguments):
    """Return the ToolMessage that LangChain's tool node gets of the tool."""
    runtime = ToolRuntime(
        state={},
        context=call_context,
        config={},
        stream_writer=lambda _: None,
        tool_call_id="call-1",
        store=None,
    )
    if "runtime" in tool.get_input_schema().model_fields:
        arguments["runtime"] = runtime
    call = {"type": "tool_call", "id": "call-1", "name": tool.name, "args": arguments}
    return await tool.ainvoke(call)
