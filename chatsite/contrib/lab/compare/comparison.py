"""Pure functions that compare two lists of messages.

They find blocks that are equal, moved, changed, new or gone, and the first
difference. The time grows linearly with the texts, not with their square.
"""

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from memory.images.image_source import without_bytes

Change = Literal["equal", "moved", "changed", "new", "gone"]
# Texts are compared in pieces of this size; only the first that differs is compared
# character by character.
PIECE_CHARS = 4096


@dataclass(frozen=True, slots=True)
class Block:
    """A message of a request.

    `keys` identify its content, such as the number of a message: blocks of two
    requests that share a key are the same block, changed or not.
    """

    keys: tuple[Hashable, ...]
    wire: dict[str, Any]
    # The kind of section in which it begins, and its messages of the transcript.
    kind: str = ""
    seqs: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """The text, followed by the tool calls."""
        text = wire_text(self.wire)
        calls = self.wire.get("tool_calls") or ()
        called = [
            f"{said.get('name', '')}({said.get('arguments', '')})"
            for each in calls
            if isinstance(said := each.get("function"), dict)
        ]
        return "\n".join(filter(None, [text, *name_images(self.wire), *called]))


@dataclass(frozen=True, slots=True)
class BlockPair:
    """The index of a block in the first and in the second list; None if absent."""

    a: int | None
    b: int | None
    change: Change


@dataclass(frozen=True, slots=True)
class FirstDifference:
    """The first difference: index of the message, and of the character in its text."""

    message: int
    character: int


def find_first_difference(
    a: Sequence[dict[str, Any]], b: Sequence[dict[str, Any]]
) -> FirstDifference | None:
    """Return where two `messages` arrays first differ; None if they are equal.

    If one array only continues the other, that is the first additional message.
    """
    for place, (one, other) in enumerate(zip(a, b, strict=False)):
        if one != other:
            is_same = one.get("role") == other.get("role")
            common = count_common(wire_text(one), wire_text(other))
            return FirstDifference(place, common if is_same else 0)
    return None if len(a) == len(b) else FirstDifference(min(len(a), len(b)), 0)


def wire_text(wire: dict[str, Any]) -> str:
    """Return the text of a message, without its images and calls."""
    content = wire.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in content)


def name_images(wire: dict[str, Any]) -> list[str]:
    """Return a placeholder for each image of a message, never its bytes."""
    content = wire.get("content") or ""
    if isinstance(content, str):
        return []
    [shown] = without_bytes([wire])
    urls = (part.get("image_url") for part in shown["content"])
    return [f"[{each['url']}]" for each in urls if each]


def count_common(one: str, other: str) -> int:
    """Return the length of the common beginning of both texts."""
    most, start = min(len(one), len(other)), 0
    while start < most:
        end = min(start + PIECE_CHARS, most)
        if one[start:end] != other[start:end]:
            break
        start = end
    while start < most and one[start] == other[start]:
        start += 1
    return start


def align_blocks(a: Sequence[Block], b: Sequence[Block]) -> list[BlockPair]:
    """Pair all blocks of both lists, in the order of the second.

    Blocks that are gone appear at their position in the first list.
    """
    partners = _find_partners(a, b)
    stayed = _find_stayed([i for i in partners if i is not None and a[i].seqs])
    # Messages of the transcript are never reported as moved: their order is fixed, only
    # the blocks between them change places.
    kept = _find_stayed([i for i in partners if i is not None], first=stayed)
    pairs: list[BlockPair] = []
    gone = iter(sorted(set(range(len(a))) - {i for i in partners if i is not None}))
    lost = next(gone, None)
    for j, i in enumerate(partners):
        while i is not None and i in kept and lost is not None and lost < i:
            pairs.append(BlockPair(lost, None, "gone"))
            lost = next(gone, None)
        pairs.append(_make_pair(a, b, i, j, is_kept=i in kept))
    rest = [] if lost is None else [lost, *gone]
    return pairs + [BlockPair(i, None, "gone") for i in rest]


def _make_pair(
    a: Sequence[Block], b: Sequence[Block], i: int | None, j: int, *, is_kept: bool
) -> BlockPair:
    if i is None:
        return BlockPair(None, j, "new")
    if a[i].wire != b[j].wire:
        return BlockPair(i, j, "changed")
    return BlockPair(i, j, "equal" if is_kept else "moved")


def _find_partners(a: Sequence[Block], b: Sequence[Block]) -> list[int | None]:
    """Return the index in the first list of each block of the second, or None."""
    known: dict[Hashable, int] = {}
    for place, block in enumerate(a):
        for key in block.keys:
            known.setdefault(key, place)
    free = set(range(len(a)))
    partners: list[int | None] = []
    for block in b:
        found = (known[key] for key in block.keys if known.get(key) in free)
        partner = next(found, None)
        free.discard(partner) if partner is not None else None
        partners.append(partner)
    return partners


def _find_stayed(places: Sequence[int], first: set[int] | None = None) -> set[int]:
    """Return the longest rising run of these places: the blocks that did not move.

    Places in `first` always belong to the run.
    """
    if first:
        places = _fit_between(places, first)
    tails: list[int] = []
    at: list[int] = []
    before: list[int] = []
    for n, place in enumerate(places):
        where = bisect_left(tails, place)
        before.append(at[where - 1] if where else -1)
        tails[where : where + 1] = [place]
        at[where : where + 1] = [n]
    kept: set[int] = set()
    n = at[-1] if at else -1
    while n >= 0:
        kept.add(places[n])
        n = before[n]
    return kept


def _fit_between(places: Sequence[int], first: set[int]) -> list[int]:
    """Return the places that fit into a rising run with all places of `first`."""
    following: list[int] = []
    least = max(places, default=0) + 1
    for place in reversed(places):
        following.append(least)
        least = place if place in first else least
    fitting, most = [], -1
    for place, end in zip(places, reversed(following), strict=True):
        if place in first:
            fitting.append(place)
            most = place
        elif most < place < end:
            fitting.append(place)
    return fitting
