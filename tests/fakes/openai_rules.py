"""OpenAI's rules for the messages and tools of a chat request, as its API refuses what
breaks them: https://platform.openai.com/docs/guides/function-calling and its errors
("An assistant message with 'tool_calls' must be followed by tool messages responding to
each 'tool_call_id'"). That results keep the order of calls is our own.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
ROLES = {"system", "developer", "user", "assistant", "tool"}

Message = dict[str, Any]


def find_violations(body: dict[str, Any]) -> list[str]:
    """Return the errors for which OpenAI would refuse this request; [] for
    a good one.
    """
    return [*_of_tools(body), *find_faults(body.get("messages"))]


def find_faults(messages: object) -> list[str]:
    """Return the errors of the `messages` of a request alone."""
    if not isinstance(messages, list) or not messages:
        return ["messages: expected at least one"]
    return list(_of_messages(messages))


def _of_tools(body: dict[str, Any]) -> Iterator[str]:
    tools = body.get("tools")
    if tools is None:
        if "tool_choice" in body:
            yield "tool_choice: only allowed when tools are specified"
        return
    if not tools:
        yield "tools: [] is too short"
    names = [tool["function"]["name"] for tool in tools]
    if len(set(names)) < len(names):
        yield "tools: a name comes twice"
    for tool in tools:
        function = tool["function"]
        if tool.get("type") != "function" or not NAME.fullmatch(function["name"]):
            yield f"tools: {function['name']!r} is no function's name"
        if function.get("parameters", {"type": "object"}).get("type") != "object":
            yield f"tools: parameters of {function['name']} are no object"


def _of_messages(messages: list[Message]) -> Iterator[str]:
    due: list[str] = []
    for place, message in enumerate(messages):
        role = message.get("role")
        if role not in ROLES:
            yield f"messages[{place}]: role {role!r}"
        content = message.get("content")
        # An empty text is taken, a list of no blocks is not.
        if content == [] or (content is None and not message.get("tool_calls")):
            yield f"messages[{place}]: {role} without content"
        if role == "tool":
            yield from _of_result(place, message, due)
            continue
        if due:
            yield f"messages[{place}]: {role} where results of {due} have to follow"
        due = []
        if role == "assistant" and "tool_calls" in message:
            yield from _of_calls(place, message["tool_calls"])
            due = [call.get("id") for call in message["tool_calls"]]
    if due:
        yield f"messages: the results of {due} are missing at the end"


def _of_result(place: int, message: Message, due: list[str]) -> Iterator[str]:
    call_id = message.get("tool_call_id")
    if call_id not in due:
        yield f"messages[{place}]: a result of {call_id!r}, which nothing before asks"
        return
    if due[0] != call_id:
        yield f"messages[{place}]: {call_id!r} comes before {due[0]!r}"
    due.remove(call_id)


def _of_calls(place: int, calls: Any) -> Iterator[str]:
    if not calls:
        yield f"messages[{place}]: tool_calls [] is too short"
    ids = [call.get("id") for call in calls]
    if len(set(ids)) < len(ids) or not all(ids):
        yield f"messages[{place}]: ids of calls {ids}"
    for call in calls:
        function = call.get("function") or {}
        if call.get("type") != "function":
            yield f"messages[{place}]: a call of type {call.get('type')!r}"
        if not NAME.fullmatch(function.get("name") or ""):
            yield f"messages[{place}]: a call of {function.get('name')!r}"
        if not _is_object(function.get("arguments")):
            yield f"messages[{place}]: arguments {function.get('arguments')!r}"


def _is_object(text: object) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (TypeError, ValueError):
        return False
