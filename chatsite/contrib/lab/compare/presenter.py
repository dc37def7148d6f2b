"""Comparisons as plain values: for JSON, for the page, and as figures for staff."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from html import unescape
from typing import Any

from django.utils.translation import gettext as _

from chatsite.pages.diff import DiffPiece, diff_words
from chatsite.pages.presenters.context_pane import TITLES

from .causes import Cause, find_causes
from .comparison import (
    Block,
    BlockPair,
    FirstDifference,
    align_blocks,
    count_common,
    find_first_difference,
)
from .costs import CostRow, Costs, list_cost_rows, measure_request
from .sent_requests import RequestComparison, SentRequest

# Characters shown of a text that is in only one request, and characters shown around
# each change of a text that is in both.
SHOWN_CHARS, AROUND_CHARS = 1_200, 240
# Characters per page that are compared word by word; longer texts are shown whole, old
# and new.
DIFF_CHARS = 24_000
# Maximum of differing blocks on a page.
MOST_SHOWN = 200
# Quotations as compose.py writes them: their texts are escaped. Readers get their marks
# in words, and no tags.
QUOTED = ("summaries", "pinned", "facts", "rules", "recalled")
QUOTATION = re.compile(r"<\w+ ([^<>]*)>([^<]*)(?:</\w+>)?")
FENCE = re.compile(r"\n?</?(?:history|pinned|facts|rules|recalled)>")
MARK = re.compile(r'\b(version|messages|n|name|date)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Figures:
    """The results of a comparison, without any text of the conversation."""

    compared: RequestComparison
    pairs: list[BlockPair]
    place: FirstDifference | None
    causes: list[Cause]
    costs: Costs

    @property
    def same(self) -> bool:
        """True if equal requests were sent, even if their texts were deleted since."""
        a, b = self.compared.a, self.compared.b
        return a is not None and a.call.sha256 == b.call.sha256


def present_figures(compared: RequestComparison) -> Figures:
    a, b = compared.a, compared.b
    before = a.blocks if a else []
    pairs = align_blocks(before, b.blocks)
    place = find_first_difference(a.built.wire if a else [], b.built.wire)
    if a and a.call.sha256 == b.call.sha256:
        place = None
    causes = find_causes(compared, pairs)
    costs = measure_request(b.call, b.built, compared.states)
    return Figures(compared, pairs, place, causes, costs)


def comparison_to_json(figures: Figures) -> dict[str, Any]:
    place, costs = figures.place, figures.costs
    found: dict[str, Any] = {
        "same": figures.same,
        "first_difference": place and asdict(place),
        "causes": [cause.code for cause in figures.causes],
        "parts": [asdict(part) for part in costs.parts],
        "uncounted": costs.uncounted,
        "messages": [asdict(pair) for pair in figures.pairs],
    }
    compared = figures.compared
    if missing := compared.missing:
        found["missing"] = missing
    if versions := compared.erased_versions:
        found["missing_summaries"] = versions
    return found


@dataclass(frozen=True, slots=True)
class ShownBlock:
    """A block on the page, or several equal blocks in a row."""

    change: str
    title: str
    pieces: list[DiffPiece] = field(default_factory=list)
    # The number of blocks that it represents.
    count: int = 1
    # Characters that are left out.
    left_out: int = 0
    # True if the provider's cache ends in this block or before it.
    ends_cache: bool = False
    is_summary: bool = False
    # The versions of the summaries that now cover messages of the first request.
    versions: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ComparisonPage:
    figures: Figures
    rows: list[CostRow]
    blocks: list[ShownBlock]
    # The number of differing blocks that are not shown.
    unshown: int
    # True if the cache ends after all shown blocks.
    ends_after: bool


def present_page(compared: RequestComparison) -> ComparisonPage:
    figures = present_figures(compared)
    blocks = list(_show_blocks(figures))
    differing = [each for each in blocks if each.change != "equal"]
    unshown = max(0, len(differing) - MOST_SHOWN)
    if unshown:
        blocks = differing[:MOST_SHOWN]
    is_marked = any(each.ends_cache for each in blocks)
    ends_after = figures.place is not None and not is_marked and not unshown
    a = compared.a
    before = measure_request(a.call, a.built, compared.states) if a else None
    rows = list_cost_rows(before, figures.costs)
    return ComparisonPage(figures, rows, blocks, unshown, ends_after)


def _show_blocks(figures: Figures) -> Iterator[ShownBlock]:
    compared, end = figures.compared, figures.place
    before = compared.a.blocks if compared.a else []
    now, room = compared.b.blocks, DIFF_CHARS
    alike: list[Block] = []
    kind, is_end, is_over = "", False, end is None
    for pair in figures.pairs:
        block = now[pair.b] if pair.b is not None else before[pair.a or 0]
        at = pair.a if pair.b is None else pair.b
        ends = not is_over and end is not None and at is not None and at >= end.message
        is_over = is_over or ends
        is_covered = pair.change == "gone" and _list_covering(block, compared.b)
        change = "summarised" if is_covered else pair.change
        if alike and (ends or change != kind):
            yield _show_alike(kind, alike, compared.b, is_end)
            alike = []
        if is_covered or (change == "equal" and not ends):
            kind, is_end = change, ends or (bool(alike) and is_end)
            alike.append(block)
            continue
        old = _read_words(before[pair.a]) if pair.a is not None else ""
        new = _read_words(now[pair.b]) if pair.b is not None else ""
        pieces, left_out, used = _show_texts(pair.change, old, new, room)
        room -= used
        title = name_block(block)
        is_summary = block.kind == "summaries"
        yield ShownBlock(pair.change, title, pieces, 1, left_out, ends, is_summary)
    if alike:
        yield _show_alike(kind, alike, compared.b, is_end)


def _read_words(block: Block) -> str:
    """Return the text of a block for people, without tags around quotations."""
    if block.kind not in QUOTED:
        return block.text
    return QUOTATION.sub(_name_quotation, FENCE.sub("", block.text))


def _name_quotation(found: re.Match[str]) -> str:
    """Return the text of a quotation below its marks, as in "v4 · #1–#8"."""
    marks = {name: unescape(value) for name, value in MARK.findall(found[1])}
    seqs = marks.get("messages") or marks.get("n", "")
    place = "–".join(f"#{seq}" for seq in seqs.split("-") if seq)
    version = f"v{marks['version']}" if "version" in marks else ""
    named = filter(None, (version, place, marks.get("name"), marks.get("date")))
    return f"\n{' · '.join(named)}\n\n{unescape(found[2])}\n"


def _list_covering(block: Block, request: SentRequest) -> list[int]:
    """Return the versions of the request's summaries that cover a message."""
    rows = request.built.summaries if block.kind == "window" else ()
    return [r.version for r in rows if r.first_seq <= block.seqs[0] <= r.last_seq]


def _show_alike(
    change: str, blocks: Sequence[Block], request: SentRequest, is_end: bool
) -> ShownBlock:
    """Return several blocks in a row as one."""
    title = " – ".join(dict.fromkeys(map(name_block, (blocks[0], blocks[-1]))))
    found = sorted({n for each in blocks for n in _list_covering(each, request)})
    return ShownBlock(change, title, [], len(blocks), 0, is_end, versions=found)


def name_block(block: Block) -> str:
    """Return a title such as "Instructions", or "#12" for a message."""
    if block.seqs:
        return f"#{block.seqs[0]}"
    return str(TITLES.get(block.kind, _("Result of a tool")))


def _show_texts(
    change: str, old: str, new: str, room: int
) -> tuple[list[DiffPiece], int, int]:
    """Return the shown pieces, the characters left out, and the characters compared.

    At most `room` characters are compared word by word.
    """
    if change == "changed":
        pieces, used = diff_texts(old, new, room)
        return *_shorten_pieces(pieces), used
    kind, text = ("removed", old) if change == "gone" else ("added", new)
    kind = "same" if change in ("moved", "equal") else kind
    left_out = max(0, len(text) - SHOWN_CHARS)
    return [DiffPiece(kind, text[:SHOWN_CHARS])], left_out, 0


def diff_texts(old: str, new: str, room: int) -> tuple[list[DiffPiece], int]:
    """Return the changes, and how many characters were compared word by word.

    That number is at most `room`; the common beginning and end count nothing.
    """
    start = count_common(old, new)
    while start and old[start - 1 : start].isalnum():
        start -= 1
    end = count_common(old[start:][::-1], new[start:][::-1])
    while end and old[len(old) - end].isalnum():
        end -= 1
    middle, other = old[start : len(old) - end], new[start : len(new) - end]
    size = len(middle) + len(other)
    if size <= room:
        changed, used = diff_words(middle, other), size
    else:
        changed, used = [DiffPiece("removed", middle), DiffPiece("added", other)], 0
    around = (
        DiffPiece("same", old[:start]),
        *changed,
        DiffPiece("same", old[len(old) - end :]),
    )
    return [piece for piece in around if piece.text], used


def _shorten_pieces(pieces: Sequence[DiffPiece]) -> tuple[list[DiffPiece], int]:
    """Shorten the pieces, unchanged ones most; also return the characters left out."""
    shown, left_out = [], 0
    for n, piece in enumerate(pieces):
        most = 2 * AROUND_CHARS if piece.kind == "same" else SHOWN_CHARS
        text = piece.text
        if len(text) > most + 1:
            left_out += len(text) - most
            head = most // 2 if piece.kind == "same" else most
            head = 0 if n == 0 and piece.kind == "same" else head
            tail = most - head if piece.kind == "same" and n < len(pieces) - 1 else 0
            text = f"{text[:head]}…{text[len(text) - tail :] if tail else ''}"
        shown.append(DiffPiece(piece.kind, text))
    return shown, left_out
