"""Calls of tools, as the loop makes them."""

from langchain.tools import ToolRuntime

from chatsite.tools.context import CallContext


def context_of(conversation=None, *, asked_seq=None, **values):
    """Of a call in the turn that answers message `asked_seq`, or the next one."""
    if conversation is not None:
        conversation.refresh_from_db()
        values = {"conversation_id": conversation.pk, **values}
        asked_seq = asked_seq or conversation.next_seq
    usual = {"conversation_id": 1, "turn_id": 1, "call_id": "call-1", "user_id": 1}
    usual |= {"idempotency_key": "key", "asked_seq": asked_seq or 1}
    return CallContext(**usual | values)


async def run(tool, call_context, **arguments):
    """What LangChain's tool node gets of the tool: a ToolMessage."""
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
