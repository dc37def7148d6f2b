"""The common result of all readers: messages with their place in the body."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple, Self

from ..canonical import Part, UnreadableHistoryError, other_part, text_part

# A developer's message is the system's under its newer name.
SYSTEM = frozenset({"system", "developer"})


class Entry(NamedTuple):
    """A canonical message, and its span in the list of the body: [start:end]."""

    role: str
    parts: list[Part]
    start: int
    end: int


# Items between two pauses, and the results and calls a reader may hold back there.
PAUSE_AFTER, MOST_WAITING = 32, 64


class EntryReader:
    """Reads the items of one API's list into entries, one by one."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        # Results that no other item has followed yet, and indexes of calls by id.
        self.results: list[Entry] = []
        self.calls: dict[str, int] = {}

    def list_instructions(self, _body: Mapping[str, Any]) -> list[str]:
        """Return the instructions that are not in the list."""
        return []

    def list_items(self, body: Mapping[str, Any]) -> list[Any]:
        return take_list(body, "messages")

    def list_reply(self, reply: Mapping[str, Any]) -> list[Entry]:
        return self.read([{**reply, "role": "assistant"}])

    def read_item(self, item: Any, at: int) -> None:
        raise NotImplementedError

    def end(self, at: int) -> None:
        """End the list after its first `at` items."""
        self.end_results()

    def end_results(self) -> None:
        if self.results:
            # In the order of their calls; those of unknown calls come last.
            self.entries += sorted(self.results, key=_find_place_of_call)
            self.results = []

    def read(self, items: Sequence[Any]) -> list[Entry]:
        self.read_on(items, 0)
        return self.entries

    def read_on(self, items: Sequence[Any], first: int) -> list["Pause"]:
        """Read the items from `first` on; return the points to resume from."""
        pauses: list[Pause] = []
        after = first + PAUSE_AFTER
        for at, item in enumerate(items[first:], first):
            self.read_item(item, at)
            if at + 1 >= after and self.count_waiting() <= MOST_WAITING:
                waiting = self.copy_waiting()
                pauses.append(Pause(at + 1, len(self.entries), waiting))
                after = at + 1 + PAUSE_AFTER
        self.end(len(items))
        return pauses

    def count_waiting(self) -> int:
        return len(self.results) + len(self.calls)

    def copy_waiting(self) -> Self:
        """Copy the state that the next item depends on, without the entries."""
        other = copy(self)
        other.entries = []
        other.results, other.calls = [*self.results], {**self.calls}
        return other


class Pause(NamedTuple):
    """A point between two items: the items before it, and the entries made of them."""

    items: int
    entries: int
    reader: EntryReader


def _find_place_of_call(entry: Entry) -> tuple[bool, int]:
    call = entry.parts[0]["result"]
    return call is None, call or 0


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
    """Return the object's `type`, or "" if it is no text."""
    kind = value.get("type")
    return kind if isinstance(kind, str) else ""


def read_mixed_parts(
    content: Any,
    read_part: Callable[[Mapping[str, Any]], Part | None],
    name: str = "Each part of `content`",
) -> list[Part]:
    """Return the parts of a text, or of a list of texts and objects.

    `read_part` reads the objects of one API; None: it is no part. `name`: of these
    objects, for errors.
    """
    if content is None:
        return []
    if isinstance(content, str):
        return [text_part(content)]
    if not isinstance(content, list):
        return [other_part(content)]
    read = (
        text_part(each) if isinstance(each, str) else read_part(take_object(each, name))
        for each in content
        if each is not None
    )
    return [part for part in read if part is not None]
