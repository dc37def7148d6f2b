"""Calls of tools and their results, in the order in which a provider takes them."""

from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from ..engine.cut_points import match_results

NO_RESULT = "(There is no result: the call was not finished.)"


def repair(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The messages, each call followed by exactly one result.

    A result that stands elsewhere is moved, a missing one says so, and one without a
    call, or a second one, is left out. Messages that are in order stay as they are.
    """
    callers = match_results(messages)
    # A result behind its call is more likely the right one than one before it.
    order = sorted(callers, key=lambda index: (index < callers[index], index))
    results: dict[tuple[int, str], BaseMessage] = {}
    for index in order:
        call = getattr(messages[index], "tool_call_id", "")
        results.setdefault((callers[index], call), messages[index])
    repaired: list[BaseMessage] = []
    for index, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            continue
        if message.content == []:
            message = message.model_copy(update={"content": ""})
        calls = message.tool_calls if isinstance(message, AIMessage) else []
        unique = {call["id"]: call for call in reversed(calls)}
        if len(unique) < len(calls):
            calls = [call for call in calls if unique[call["id"]] is call]
            message = message.model_copy(update={"tool_calls": calls})
        repaired.append(message)
        for call in calls:
            id_ = str(call["id"])
            missing = ToolMessage(NO_RESULT, tool_call_id=id_, name=call["name"])
            repaired.append(results.get((index, id_), missing))
    return repaired


def find_rounds(messages: Sequence[BaseMessage]) -> list[int]:
    """Where each round of calls begins, in messages that are in order."""
    return [
        index
        for index, message in enumerate(messages)
        if isinstance(message, AIMessage) and message.tool_calls
    ]
