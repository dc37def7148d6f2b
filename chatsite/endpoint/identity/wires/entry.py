"""What all wires give: messages with their place in the body."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..canonical import Part, UnreadableHistoryError, other_part, text_part

# A developer's message is the system's under its newer name.
SYSTEM = frozenset({"system", "developer"})


class Entry(NamedTuple):
    """A canonical message, and where it is in the list of the body: [start:end]."""

    role: str
    parts: list[Part]
    start: int
    end: int


def take_list(body: Mapping[str, Any], name: str) -> list[Any]:
    value = body.get(name)
    if not isinstance(value, list):
        raise UnreadableHistoryError(f"`{name}` has to be a list.")
    return value


def take_object(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise UnreadableHistoryError(f"{name} has to be an object.")
    return value


def name_role(role: Any) -> str:
    if not isinstance(role, str) or not role:
        raise UnreadableHistoryError("A message has no `role`.")
    return "system" if role in SYSTEM else role


def name_kind(value: Mapping[str, Any]) -> str:
    """Its `type`; anything but a text is none."""
    kind = value.get("type")
    return kind if isinstance(kind, str) else ""


def read_mixed_parts(
    content: Any, read_part: Callable[[Mapping[str, Any]], Part]
) -> list[Part]:
    """A text, or a list of texts and objects, of which each wire reads its own."""
    if content is None:
        return []
    if isinstance(content, str):
        return [text_part(content)]
    if not isinstance(content, list):
        return [other_part(content)]
    return [
        text_part(each)
        if isinstance(each, str)
        else read_part(take_object(each, "Each part of `content`"))
        for each in content
        if each is not None
    ]
