"""Two lists of messages beside each other, as pure functions: which are equal, moved,
changed, new or gone, and where the first of all differences is. The time grows with the
texts, not with their square.
"""

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from memory.images.image_source import without_bytes

Change = Literal["equal", "moved", "changed", "new", "gone"]
# Texts are compared in pieces of so many characters, and only one of them in letters.
PIECE_CHARS = 4096


@dataclass(frozen=True, slots=True)
class Block:
    """A message of a request. `keys` name what it is made of, such as the number of a
    message: blocks of two requests that share one are the same, changed or not."""

    keys: tuple[Hashable, ...]
    wire: dict[str, Any]
    # The kind of section that it begins in, and the messages of the transcript.
    kind: str = ""
    seqs: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """What it says, with the calls of tools that it asks for."""
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
    """Where a block is in the first list and in the second; None: it is not there."""

    a: int | None
    b: int | None
    change: Change


@dataclass(frozen=True, slots=True)
class FirstDifference:
    """The first difference: the message, and the character of its text."""

    message: int
    character: int


def find_first_difference(
    a: Sequence[dict[str, Any]], b: Sequence[dict[str, Any]]
) -> FirstDifference | None:
    """Where two `messages` arrays differ first; None: they don't. Where one only goes
    on, that is the first message which the other lacks."""
    for place, (one, other) in enumerate(zip(a, b, strict=False)):
        if one != other:
            return FirstDifference(place, _find_character(one, other))
    return None if len(a) == len(b) else FirstDifference(min(len(a), len(b)), 0)


def _find_character(one: dict[str, Any], other: dict[str, Any]) -> int:
    if one.get("role") != other.get("role"):
        return 0
    return count_common(wire_text(one), wire_text(other))


def wire_text(wire: dict[str, Any]) -> str:
    """The text of a message, which stands before its images and calls."""
    content = wire.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in content)


def name_images(wire: dict[str, Any]) -> list[str]:
    """What stands for each image of a message: never its bytes."""
    content = wire.get("content") or ""
    if isinstance(content, str):
        return []
    [shown] = without_bytes([wire])
    urls = (part.get("image_url") for part in shown["content"])
    return [f"[{each['url']}]" for each in urls if each]


def count_common(one: str, other: str) -> int:
    """How many characters both texts begin with."""
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
    """All blocks of both lists: in the order of the second, and what is gone where it
    was in the first."""
    partners = _find_partners(a, b)
    stayed = _find_stayed(
        [i for i in partners if i is not None and _is_of_transcript(a[i])]
    )
    # Of blocks that changed places the messages of the transcript are never the ones
    # to say so: their order does not change, that of what stands among them does.
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


def _is_of_transcript(block: Block) -> bool:
    return bool(block.seqs)


def _find_partners(a: Sequence[Block], b: Sequence[Block]) -> list[int | None]:
    """Of each block of the second list its place in the first."""
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
    """The longest rising run of these places: those of blocks that did not move. What
    is in `first` belongs to it whatever else does."""
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
    """The places that can stand in a rising run with all those of `first`."""
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
