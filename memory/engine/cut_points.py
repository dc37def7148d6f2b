"""Where a window may begin: before a user message, and never inside a tool call."""

from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage


def find_cut_points(messages: Sequence[BaseMessage]) -> list[int]:
    """Indices of the user messages that no tool call before them reaches beyond."""
    ends = _last_results(messages)
    points = []
    open_until = -1
    for index, message in enumerate(messages):
        if isinstance(message, HumanMessage) and open_until < index:
            points.append(index)
        open_until = max(open_until, ends.get(index, index))
    return points


def _last_results(messages: Sequence[BaseMessage]) -> dict[int, int]:
    """Index of each message that calls tools -> index of the last of their results."""
    ends: dict[int, int] = {}
    # Some models number the calls of each message from the start: the latest counts.
    called_at: dict[str | None, int] = {}
    for index, message in enumerate(messages):
        if isinstance(message, AIMessage):
            called_at |= {call["id"]: index for call in message.tool_calls}
        elif isinstance(message, ToolMessage) and message.tool_call_id in called_at:
            ends[called_at[message.tool_call_id]] = index
    return ends
