"""What all wires give: messages with their place in the body."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..canonical import Part, UnreadableHistoryError

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
