"""A cache of parsed bodies in this process.

A body that begins with the same bytes is parsed from where it differs, with the same
result as a full parse.

Bytes are compared by their SHA-256, and only with bodies of the same user.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from sys import getsizeof
from typing import Any, NamedTuple

from chatsite.contrib.endpoint.apis.api import Api

from ..identity.history import History, Pause, read_history, read_history_on
from .bodies import Body, BodyPrefix, SentPiece, read_body

# Shorter histories are not cached.
MIN_MESSAGES = 64
# Estimated bytes of memory for the bodies of all users, and of one user.
MAX_MEMORY, USER_MEMORY = 48 * 1024 * 1024, 16 * 1024 * 1024
# Bodies of one user: each of them may be compared with a new one.
MAX_BODIES = 8
# Estimates for a piece, for the forms of its text, and for each value in it.
OF_PIECE, FORMS, OF_VALUE = 900, 3, 100
# Clients put marks into their newest messages and remove them later. A body still
# counts as continued if the new one lacks at most so many of its cache marks.
MAX_LOST = 2


class Mark(NamedTuple):
    """A point after a message, with the SHA-256 of the bytes before it."""

    pause: Pause
    pieces: int
    end: int
    digest: bytes
    # Estimated memory of the body up to here.
    memory: int


@dataclass(frozen=True, slots=True, eq=False)
class CachedBody:
    """A body up to its last mark.

    `value` holds the list and the fields before it.
    """

    value: dict[str, Any]
    pieces: list[SentPiece]
    between: list[str]
    history: History
    marks: Sequence[Mark]

    @property
    def memory(self) -> int:
        return self.marks[-1].memory

    def find_same(self, raw: bytes) -> "CachedPrefix | None":
        """Return the longest prefix of these bytes that is cached here."""
        found, sha256, start = None, hashlib.sha256(), 0
        view = memoryview(raw)
        for place, mark in enumerate(self.marks):
            sha256.update(view[start : mark.end])
            if sha256.digest() != mark.digest:
                break
            found, start = CachedPrefix(self, place, sha256.copy()), mark.end
        return found


class CachedPrefix(NamedTuple):
    """The beginning of a cached body, up to one of its marks."""

    kept: CachedBody
    place: int
    sha256: Any

    @property
    def mark(self) -> Mark:
        return self.kept.marks[self.place]

    @property
    def lost(self) -> int:
        """The number of later marks that the new body does not have."""
        return len(self.kept.marks) - 1 - self.place

    def make_prefix(self, list_name: str) -> BodyPrefix:
        value, mark = self.kept.value, self.mark
        return BodyPrefix(
            {**value, list_name: value[list_name][: mark.pause.items]},
            self.kept.pieces[: mark.pieces],
            self.kept.between[: mark.pieces],
            mark.end,
            self.sha256.copy(),
        )


class ParsedBody(NamedTuple):
    """A parsed body; `same` is the part that was cached."""

    body: Body
    history: History
    same: CachedPrefix | None = None

    @property
    def known_items(self) -> int:
        """The number of leading items that were checked when they first came."""
        return self.same.mark.pause.items if self.same else 0


class BodyCache:
    """The cached bodies of all users, in the order of last use.

    Used by one thread.
    """

    def __init__(self) -> None:
        self._by_user: OrderedDict[Hashable, list[CachedBody]] = OrderedDict()
        self.memory = 0

    def parse_body(self, whose: Hashable, api: Api, raw: bytes) -> ParsedBody:
        """Parse a body, using the cache.

        Raise BodyError and UnreadableHistoryError.
        """
        same = self._find(whose, raw)
        if same is None:
            body = read_body(raw, api.list_name)
            return ParsedBody(body, read_history(api.name, body.value))
        body = read_body(raw, api.list_name, same.make_prefix(api.list_name))
        known, pause = same.kept.history, same.mark.pause
        history = read_history_on(api.name, body.value, known, pause)
        return ParsedBody(body, history, same)

    def add_body(
        self, whose: Hashable, api: Api, raw: bytes, reading: ParsedBody
    ) -> None:
        """Cache a body that may be sent."""
        same = reading.same
        known = same.kept.marks[: same.place + 1] if same else []
        new = [*_list_new_marks(raw, reading)]
        if not new and (same is None or not same.lost):
            return
        marks = [*known, *new]
        if marks[-1].pause.items >= MIN_MESSAGES:
            kept = _cut_to_marks(api.list_name, reading, marks)
            is_same = same is not None and same.lost <= MAX_LOST
            self._add(whose, kept, same.kept if is_same else None)

    def _find(self, whose: Hashable, raw: bytes) -> CachedPrefix | None:
        best = None
        for kept in reversed(self._by_user.get(whose, ())):
            same = kept.find_same(raw)
            if same and (best is None or same.mark.end > best.mark.end):
                best = same
            if same and not same.lost:
                break
        if best:
            self._by_user.move_to_end(whose)
        return best

    def _add(
        self, whose: Hashable, kept: CachedBody, earlier: CachedBody | None
    ) -> None:
        own = self._by_user.setdefault(whose, [])
        self._by_user.move_to_end(whose)
        if earlier in own:
            own.remove(earlier)
            self.memory -= earlier.memory
        own.append(kept)
        self.memory += kept.memory
        while len(own) > MAX_BODIES or sum(each.memory for each in own) > USER_MEMORY:
            self.memory -= own.pop(0).memory
        while self.memory > MAX_MEMORY:
            oldest, bodies = next(iter(self._by_user.items()))
            self.memory -= bodies.pop(0).memory
            if not bodies:
                del self._by_user[oldest]


def _list_new_marks(raw: bytes, reading: ParsedBody) -> Iterator[Mark]:
    """Yield the marks after the cached part, within one user's memory limit."""
    body, same = reading.body, reading.same
    first, end, memory = 0, 0, 0
    if same:
        _, first, end, _, memory = same.mark
    sha256 = same.sha256.copy() if same else hashlib.sha256()
    hashed, view = end, memoryview(raw)
    pauses = {each.items: each for each in reading.history.pauses}
    for n, piece in enumerate(body.pieces[first:], first):
        end += len(body.between[n].encode()) + len(piece.text.encode())
        memory += OF_PIECE + _weigh(body.between[n]) + _weigh(piece.text)
        if memory > USER_MEMORY:
            return
        if piece.at is not None and (pause := pauses.get(piece.at + 1)):
            sha256.update(view[hashed:end])
            hashed = end
            yield Mark(pause, n + 1, end, sha256.digest(), memory)


def _weigh(text: str) -> int:
    values = text.count(",") + text.count("{") + text.count("[")
    return FORMS * getsizeof(text) + OF_VALUE * values


def _cut_to_marks(
    list_name: str, reading: ParsedBody, marks: Sequence[Mark]
) -> CachedBody:
    body, history, last = reading.body, reading.history, marks[-1]
    # Without the fields after the list, which the next body may not have.
    fields = body.value.items()
    before = dict(takewhile(lambda each: each[0] != list_name, fields))
    items = body.value[list_name][: last.pause.items]
    messages = history.messages[: last.pause.entries]
    pauses = [mark.pause for mark in marks]
    return CachedBody(
        {**before, list_name: items},
        body.pieces[: last.pieces],
        body.between[: last.pieces],
        history._replace(messages=messages, pauses=pauses),
        marks,
    )


body_cache = BodyCache()
