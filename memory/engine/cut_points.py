"""Places where a window may begin: before a user message, never inside a tool call.

An agent's window may also begin after a complete round of tool calls. The newest user
message is then sent in front of it, whatever is summarised.
"""

from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

# In `additional_kwargs` of a result that came after its call was answered: the number
# of the message with the call. It answers no call, so it stays where it arrived.
LATE = "late_for"


def find_cut_points(
    messages: Sequence[BaseMessage], *, rounds: bool = False
) -> list[int]:
    """Return the indices of user messages that no earlier tool call reaches beyond.

    With `rounds`, also what follows a complete round of tools in the newest turn.
    """
    last = find_newest_question(messages) if rounds else len(messages)

    def begins(index: int) -> bool:
        if index > max(last, 0) and isinstance(messages[index - 1], ToolMessage):
            return not isinstance(messages[index], ToolMessage)
        return _is_users(messages[index])

    return list(filter(begins, find_gaps(messages)))


def find_gaps(messages: Sequence[BaseMessage]) -> list[int]:
    """Return the indices of all messages that no earlier tool call reaches beyond."""
    ends = _ends_of_calls(messages)
    gaps = []
    open_until = -1
    for index in range(len(messages)):
        if open_until < index:
            gaps.append(index)
        open_until = max(open_until, ends.get(index, index))
    return gaps


def is_late(message: BaseMessage) -> bool:
    """Return whether it is a result that came after its call was answered.

    Quotes of such results count, too.
    """
    return message.additional_kwargs.get(LATE) is not None


def _is_users(message: BaseMessage) -> bool:
    return isinstance(message, HumanMessage) and not is_late(message)


def find_turn_starts(messages: Sequence[BaseMessage]) -> list[int]:
    """Return the indices of the user messages."""
    return [i for i, each in enumerate(messages) if _is_users(each)]


def find_newest_question(messages: Sequence[BaseMessage]) -> int:
    """Return the index of the newest user message, or -1."""
    backwards = range(len(messages) - 1, -1, -1)
    return next((n for n in backwards if _is_users(messages[n])), -1)


def find_open_question(messages: Sequence[BaseMessage]) -> int:
    """Return the index of the newest user message, or -1.

    -1 also if it was answered: the last message has words of the model.
    """
    last = messages[-1] if messages else None
    is_answered = isinstance(last, AIMessage) and not last.tool_calls
    return -1 if is_answered else find_newest_question(messages)


def match_results(messages: Sequence[BaseMessage]) -> dict[int, int]:
    """Map the index of each tool result to the index of the message with its call.

    Some models number the calls of each message from the start: the latest counts. A
    result before any such call belongs to the first one after it.
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
    """Map the index of a call or early result to the last index that belongs to it."""
    ends: dict[int, int] = {}
    for pair in match_results(messages).items():
        start, end = sorted(pair)
        ends[start] = max(end, ends.get(start, 0))
    return ends
