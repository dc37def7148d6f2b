"""One step of a conversation's memory: a version, what it was made of, and what was
lost or came from nowhere on the way.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.core.paginator import Page, Paginator
from django.db.models import Prefetch, QuerySet

from chatsite.pages import diff as differ
from memory import versions
from memory.engine.summaries import material
from memory.integrity import signatures
from memory.models import Conversation, Message, Summary
from memory.ranges import within

from .. import labels, redaction
from ..rights import Rights
from . import marking, picture
from .marking import Piece
from .picture import Picture
from .reading import readable, text_of

PAGE_VERSIONS = 40
PAGE_MESSAGES = 100
# Enough to draw; what is in force is merged long before it is so many.
MAX_IN_FORCE = 400
RANGES = Summary.objects.only("version", "first_seq", "last_seq", "status")

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Source:
    """A message or an older version that a step has read."""

    row: Message | Summary
    pieces: list[Piece]
    lost: int


@dataclass(frozen=True, slots=True)
class Line:
    """A version in the list of them."""

    row: Summary
    shown: bool
    span: str
    compacted: int
    because: str
    tokens: str
    author: str
    flags: list[str]

    @classmethod
    def of(cls, row: Summary, shown: int) -> "Line":
        return cls(
            row=row,
            shown=row.version == shown,
            span=labels.span(row),
            compacted=labels.compacted(row),
            because=labels.because(row),
            tokens=labels.tokens(row),
            author=labels.author(row),
            flags=labels.flags(row),
        )


@dataclass(frozen=True, slots=True)
class Step:
    line: Line
    pieces: list[Piece]
    invented: int
    holds: bool | None  # None: not looked at, as its text was not read
    sources: list[Source]
    successors: list[Summary]
    messages: list[Source]
    page: Page
    # Whether the texts were too long to be read for facts.
    unmarked: bool = False

    @property
    def more(self) -> str:
        """The address of another page of its messages, up to the page's number."""
        return f"v={self.line.row.version}&"


@dataclass(frozen=True, slots=True)
class Block:
    """The versions around the shown one, as a list and as a picture."""

    lines: list[Line]
    history: Picture
    in_force: Picture
    first: int
    last: int
    newest: int
    previous: int | None
    next: int | None

    @property
    def before(self) -> int:
        """A version of the page of earlier ones."""
        return self.first - 1

    @property
    def after(self) -> int:
        return self.last + 1


@dataclass(frozen=True, slots=True)
class Comparison:
    old: int
    new: int
    pieces: list[differ.Piece]
    missing: int | None = None


def _rows(conversation: Conversation, rights: Rights) -> QuerySet[Summary]:
    rows = readable(conversation.summaries, rights, redaction.SUMMARY)
    rows = rows.select_related("author")
    return rows.prefetch_related(Prefetch("folded_from", RANGES))


def find(
    conversation: Conversation, rights: Rights, version: int | None
) -> Summary | None:
    """A version, without a number the newest; None: there is none."""
    rows = _rows(conversation, rights).order_by("-version")
    if version is not None:
        rows = rows.filter(version=version)
    return rows.first()


def block_of(conversation: Conversation, shown: Summary) -> Block:
    start = (shown.version - 1) // PAGE_VERSIONS * PAGE_VERSIONS + 1
    span = (start, start + PAGE_VERSIONS - 1)
    rows = conversation.summaries.defer(*redaction.SUMMARY).select_related("author")
    rows = rows.prefetch_related(Prefetch("folded_from", RANGES))
    listed = list(rows.filter(version__range=span).order_by("version"))
    numbers = conversation.summaries.order_by().values_list("version", flat=True)
    newest_version = numbers.order_by("-version").first()
    older = numbers.filter(version__lt=shown.version).order_by("-version")
    newer = numbers.filter(version__gt=shown.version).order_by("version")
    active = conversation.summaries.filter(status=Summary.Status.ACTIVE)
    in_force = active.defer(*redaction.SUMMARY).order_by("first_seq")[:MAX_IN_FORCE]
    newest = max(conversation.next_seq - 1, shown.last_seq)
    place = (newest, shown.version)
    return Block(
        lines=[Line.of(row, shown.version) for row in listed],
        history=picture.of_versions(conversation.pk, listed, *place),
        in_force=picture.of_levels(conversation.pk, list(in_force), *place),
        first=span[0],
        last=min(span[1], newest_version),
        newest=newest_version,
        previous=older.first(),
        next=newer.first(),
    )


def step_of(
    conversation: Conversation, rights: Rights, shown: Summary, page: int | None
) -> Step:
    sources = list(shown.folded_from.all())
    older = _rows(conversation, rights).filter(pk__in=[row.pk for row in sources])
    older = list(older.order_by("first_seq"))
    found = _fresh(conversation, rights, shown, sources)
    shown_page = Paginator(found, PAGE_MESSAGES).get_page(page)
    messages = list(shown_page)
    successors = RANGES.filter(folded_from=shown).order_by("version")
    common = {
        "line": Line.of(shown, shown.version),
        "successors": list(successors),
        "page": shown_page,
    }
    if not rights.content:
        return Step(
            pieces=marking.mark(text_of(shown, rights), ()),
            invented=0,
            holds=None,
            sources=[_hidden(row, rights) for row in older],
            messages=[_hidden(row, rights) for row in messages],
            **common,
        )
    lost = marking.lost([row.text for row in [*older, *messages]], [shown.text])
    is_whole = not shown_page.has_other_pages()
    invented = _invented(shown, older, messages if is_whole else None)
    marked = list(_marked([*older, *messages], lost))
    return Step(
        pieces=marking.mark(shown.text, invented),
        invented=len(invented),
        holds=signatures.holds(shown),
        sources=marked[: len(older)],
        messages=marked[len(older) :],
        unmarked=lost is None,
        **common,
    )


def _hidden(row: Message | Summary, rights: Rights) -> Source:
    return Source(row, marking.mark(text_of(row, rights), ()), 0)


def _marked(
    rows: Sequence[Message | Summary], lost: list[list[str]] | None
) -> Iterator[Source]:
    for row, found in zip(rows, lost or [[]] * len(rows), strict=True):
        yield Source(row, marking.mark(row.text, found), len(found))


def _invented(
    shown: Summary, older: list[Summary], messages: list[Message] | None
) -> list[str]:
    """Those noted when it was written, and, where all of its source is here, those
    that are not in it now."""
    flags = shown.flags if isinstance(shown.flags, dict) else {}
    noted = flags.get("unsupported")
    known = [str(fact) for fact in noted] if isinstance(noted, list) else []
    if messages is None or not shown.text:
        return known
    texts = [material.describe_text(row.to_langchain()) for row in messages]
    sources = [versions.to_block(row).text for row in older] + texts
    dates = [row.created_at.date() for row in messages]
    return marking.invented(shown.text, sources, dates, known)


def _fresh(
    conversation: Conversation, rights: Rights, shown: Summary, older: list[Summary]
) -> QuerySet[Message]:
    """The messages that this version was the first to stand for."""
    known = sorted((row.first_seq, row.last_seq) for row in older)
    fresh = _without((shown.first_seq, shown.last_seq), known)
    rows = readable(conversation.messages, rights, redaction.MESSAGE)
    return rows.filter(within(fresh)).order_by("seq")


def _without(whole: Range, parts: Sequence[Range]) -> Iterator[Range]:
    start, end = whole
    for first, last in parts:
        if first > start:
            yield start, min(first - 1, end)
        start = max(start, last + 1)
    if start <= end:
        yield start, end


def compare(conversation: Conversation, old: int, new: int) -> Comparison:
    """What changed from one version to another."""
    rows = conversation.summaries.filter(version__in=(old, new))
    texts = dict(rows.values_list("version", "text"))
    for version in (old, new):
        if version not in texts:
            return Comparison(old, new, [], missing=version)
    return Comparison(old, new, differ.diff(texts[old], texts[new]))
