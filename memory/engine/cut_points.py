"""Where a window may begin: before a user message, and never inside a tool call.

An agent's window may also begin after a complete round of tool calls: there the newest
user message is sent in front of it, whatever is summarised.
"""

from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

# In `additional_kwargs` of a result that came after its call was answered: the number
# of the message that asked. It answers no call, so it stands where it came.
LATE = "late_for"


def find_cut_points(
    messages: Sequence[BaseMessage], *, rounds: bool = False
) -> list[int]:
    """Indices of the user messages that no tool call before them reaches beyond; with
    `rounds` also of what follows a complete round of tools in the newest turn."""
    last = find_newest_question(messages) if rounds else len(messages)

    def begins(index: int) -> bool:
        if index > max(last, 0) and isinstance(messages[index - 1], ToolMessage):
            return not isinstance(messages[index], ToolMessage)
        return _is_users(messages[index])

    return list(filter(begins, find_gaps(messages)))


def find_gaps(messages: Sequence[BaseMessage]) -> list[int]:
    """Indices of all messages that no tool call before them reaches beyond."""
    ends = _ends_of_calls(messages)
    gaps = []
    open_until = -1
    for index in range(len(messages)):
        if open_until < index:
            gaps.append(index)
        open_until = max(open_until, ends.get(index, index))
    return gaps


def is_late(message: BaseMessage) -> bool:
    """Whether it is a result that came after its call was answered, or its quote."""
    return message.additional_kwargs.get(LATE) is not None


def _is_users(message: BaseMessage) -> bool:
    return isinstance(message, HumanMessage) and not is_late(message)


def find_turn_starts(messages: Sequence[BaseMessage]) -> list[int]:
    """Indices of the user messages."""
    return [i for i, each in enumerate(messages) if _is_users(each)]


def find_newest_question(messages: Sequence[BaseMessage]) -> int:
    """Index of the newest user message; -1 = there is none."""
    backwards = range(len(messages) - 1, -1, -1)
    return next((n for n in backwards if _is_users(messages[n])), -1)


def find_open_question(messages: Sequence[BaseMessage]) -> int:
    """Index of the newest user message; -1 = there is none, or it was answered: what
    comes last is words of the model."""
    last = messages[-1] if messages else None
    is_answered = isinstance(last, AIMessage) and not last.tool_calls
    return -1 if is_answered else find_newest_question(messages)


def match_results(messages: Sequence[BaseMessage]) -> dict[int, int]:
    """Index of each tool result -> index of the message with its call.

    Some models number the calls of each message from the start: the latest counts. A
    result that comes before any such call belongs to the first one after it.
    """
    callers: dict[int, int] = {}
    called_at: dict[str | None, int] = {}
    early: dict[str | None, list[int]] = {}
    for index, message in enumerate(messages):
        if isinstance(message, AIMessage):
            for call in message.tool_calls:
                called_at[call["id"]] = index
                callers |= dict.fromkeys(early.pop(call["id"], ()), index)
        elif isinstance(message, ToolMessage) and not is_late(message):
            if message.tool_call_id in called_at:
                callers[index] = called_at[message.tool_call_id]
            else:
                early.setdefault(message.tool_call_id, []).append(index)
    return callers


def _ends_of_calls(messages: Sequence[BaseMessage]) -> dict[int, int]:
    """Index of a call or an early result -> the last index that belongs to it."""
    ends: dict[int, int] = {}
    for pair in match_results(messages).items():
        start, end = sorted(pair)
        ends[start] = max(end, ends.get(start, 0))
    return ends
