"""Excerpts of found messages for the model.

Only hits that fit the question well enough are shown, and the best passage of long
ones.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from langchain_core.messages import BaseMessage, HumanMessage

from ..blank import is_blank
from ..compose import LINE, compose_context, day_of, quote_message, role_of
from ..tokens import TokenCounter
from . import passages, values
from .breadth import FEW, Breadth, find_breadth
from .passages import Span
from .ranking import Hit, read_query
from .terms import CHINESE, STOP_WORDS, WORD, fold_forms, stem_word

MARK = "…"
# The ends of an excerpt move by at most so many characters to the end of a word.
WORD_CHARS = 20
# A word of three letters, or a number; others are seldom what a passage says.
FULL_WORD = re.compile(r"[^\W\d_]{3}|^[\d#]+$")
# The start and end of a term, and the term.
Place = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class RecallNote:
    """A message as it is quoted in a request.

    `span` is the quoted part of its text, `replaced_by` the message with the newest
    value, and `until` the day of the next value, if known. With a `place`, the span is
    of the long file at this place of the message.
    """

    seq: int
    message: BaseMessage
    span: Span | None = None
    replaced_by: int | None = None
    until: str = ""
    place: int | None = None


def choose_excerpts(
    hits: Sequence[Hit],
    messages: Mapping[int, BaseMessage],
    question: str,
    *,
    room: int,
    count_tokens: TokenCounter,
    later: Iterable[BaseMessage] = (),
) -> list[RecallNote]:
    """Return the best hits that fit into `room` tokens, in the order of the messages.

    Where a value has changed, the newest one is shown before an older one; `later` are
    messages of the request, after all hits, that may contain it.
    """
    wanted, breadth = read_query(question).terms, find_breadth(question)
    measure = Measure(count_tokens)
    room -= measure.frame
    # A message that only calls tools is found by them, and has no words to show.
    said = {seq for seq, each in messages.items() if not is_blank(each.text)}
    hits = [hit for hit in hits if hit.fit >= breadth.min_fit and hit.seq in said]
    if breadth is not FEW:
        messages = {hit.seq: _make_line(messages[hit.seq]) for hit in hits}
    found = {
        hit.seq: _make_note(hit, messages[hit.seq], wanted, measure, most)
        for hit, most in zip(hits, _share_out(room, len(hits), breadth), strict=True)
    }
    # Values are read from whole passages, of which a small room may show only a part.
    shown = (
        cut_excerpt(messages[hit.seq], _find_passage(hit, messages[hit.seq]))
        for hit in hits
    )
    later = [*later]
    if statements := [*_read_statements(shown)]:
        statements += _read_statements(later)
    changes = values.find_changes(statements, wanted)
    newest = {old: change.newest for old, change in changes.items()}
    days = {int(each.id or 0): day_of(each) for each in (*messages.values(), *later)}
    until = {old: days.get(each.following, "") for old, each in changes.items()}
    notes: dict[int, RecallNote] = {}
    quotes: dict[int, str] = {}
    size = 0
    for seq in _newest_first(found, newest):
        if seq not in found or newest.get(seq) in found.keys() - notes.keys():
            continue
        marked = _mark_note(found[seq], newest, until, newest.values())
        larger = size + measure(marked.message)
        if breadth is not FEW:
            quotes[seq] = quote_message(marked.message)
            larger = measure.count_lines({n: quotes[n] for n in (*notes, seq)}, days)
        if larger <= room:
            notes[seq], size = found[seq], larger
    return _mark_all([notes[seq] for seq in sorted(notes)], newest, until)


def _share_out(room: int, hits: int, breadth: Breadth) -> list[int]:
    """Return the room of each hit: a few get all that is theirs."""
    most = room // min(max(hits, breadth.best), breadth.parts)
    return [room // breadth.best, *[most] * (hits - 1)][:hits]


def restore_excerpts(
    messages: Iterable[BaseMessage],
    spans: Iterable[list[int]],
    newest: Mapping[int, int],
    until: Mapping[int, str],
    lines: Collection[int] = (),
) -> Iterator[BaseMessage]:
    """Yield the messages of recorded notes, as they were sent.

    `spans` are of [number, start, end], `newest` maps replaced messages to their
    replacements, `until` to days; `lines` are the numbers of those sent as lines.
    """
    cuts = {seq: (start, end) for seq, start, end in spans}
    numbered = ((int(message.id or 0), message) for message in messages)
    numbered = ((n, _make_line(each) if n in lines else each) for n, each in numbered)
    notes = [
        RecallNote(seq, cut_excerpt(message, cuts[seq]) if seq in cuts else message)
        for seq, message in numbered
    ]
    return (note.message for note in _mark_all(notes, newest, until))


def _mark_all(
    notes: Sequence[RecallNote], newest: Mapping[int, int], until: Mapping[int, str]
) -> list[RecallNote]:
    """Mark all notes; a record of the notes is enough to repeat it."""
    known = {newest.get(note.seq) for note in notes}
    marked = [_mark_note(note, newest, until, known) for note in notes]
    days = ["", *(day_of(note.message) for note in marked)]
    return [
        replace(note, message=_make_line(note.message, with_day=day != before))
        if LINE in note.message.additional_kwargs
        else note
        for note, (before, day) in zip(marked, pairwise(days), strict=True)
    ]


def _mark_note(
    note: RecallNote,
    newest: Mapping[int, int],
    until: Mapping[int, str],
    known: Collection[int | None],
) -> RecallNote:
    """Return the note with marks for its values.

    A newer value is elsewhere, or the note has one of the newest `known`. A value
    between an older and a newer one has been replaced.
    """
    newer, day = newest.get(note.seq), until.get(note.seq, "")
    if not newer and note.seq not in known:
        return note
    marks = {"replaced_by": newer, "until": day} if newer else {"newest": True}
    kwargs = note.message.additional_kwargs | marks
    message = note.message.model_copy(update={"additional_kwargs": kwargs})
    return replace(note, message=message, replaced_by=newer, until=day)


def cut_excerpt(message: BaseMessage, span: Span) -> BaseMessage:
    """Return a copy with only this part of the text, marked as an excerpt."""
    start, end = span
    text = message.text
    content = MARK * (start > 0) + text[start:end] + MARK * (end < len(text))
    marked = message.additional_kwargs | {"excerpt": True}
    return message.model_copy(update={"content": content, "additional_kwargs": marked})


def _make_line(message: BaseMessage, *, with_day: bool = False) -> BaseMessage:
    known = message.additional_kwargs | {LINE: with_day}
    return message.model_copy(update={"additional_kwargs": known})


def _read_statements(
    messages: Iterable[BaseMessage],
) -> Iterator[values.ValueStatement]:
    for each in messages:
        yield from values.read_statements(int(each.id or 0), role_of(each), each.text)


def _newest_first(found: Iterable[int], newest: Mapping[int, int]) -> list[int]:
    """Return the numbers in their order, each after its replacement."""
    order = []
    for seq in found:
        chain = [seq]
        while newer := newest.get(chain[-1]):
            chain.append(newer)
        order += reversed(chain)
    return [*dict.fromkeys(order)]


class Measure:
    """The token count of notes in a context."""

    def __init__(self, count_tokens: TokenCounter) -> None:
        self.count_tokens = count_tokens
        self.nothing = count_tokens([HumanMessage("")])
        frame = compose_context(system_prompt="", recalled=[HumanMessage("")]).messages
        self.frame = count_tokens(frame)

    def __call__(self, message: BaseMessage) -> int:
        quote = HumanMessage(quote_message(message) + "\n")
        # One more, because the count of each part is rounded on its own.
        return self.count_tokens([quote]) - self.nothing + 1

    def count_lines(self, quotes: Mapping[int, str], days: Mapping[int, str]) -> int:
        """Return the tokens of lines, each with its day where the day changes."""
        dates = pairwise(["", *(days[seq] for seq in sorted(quotes))])
        changes = sum(a != b for a, b in dates)
        text = "\n".join(quotes.values()) + ' date="2026-01-31"' * changes
        return self.count_tokens([HumanMessage(text)]) - self.nothing


def _make_note(
    hit: Hit, message: BaseMessage, wanted: frozenset[str], measure: Measure, most: int
) -> RecallNote:
    """Return the message as a note of `most` tokens.

    Whole, or its best passage, or the best part of that. It is larger where `most` is
    too little for any excerpt.
    """
    if (whole := measure(message)) <= most:
        return RecallNote(hit.seq, message)
    start, end = _find_passage(hit, message)
    if measure(passage := cut_excerpt(message, (start, end))) <= most:
        return RecallNote(hit.seq, passage, (start, end))
    around = measure(cut_excerpt(message, (0, 0)))
    size = len(message.text) * (most - around) // max(whole - around, 1)
    if size < WORD_CHARS:
        return RecallNote(hit.seq, message)
    first, last = find_span(message.text[start:end], wanted, size)
    span = start + first, start + last
    return RecallNote(hit.seq, cut_excerpt(message, span), span)


def _find_passage(hit: Hit, message: BaseMessage) -> Span:
    """Return the span of the best passage.

    All of the text if the index was built from another text, or in another way.
    """
    spans = passages.split_passages(message.text)
    return spans[hit.passage] if hit.passage < len(spans) else (0, len(message.text))


def find_span(text: str, wanted: frozenset[str], size: int) -> Span:
    """Return the part of up to `size` characters that says most.

    That is the first with most different terms, where a wanted one counts twice, of
    those with a wanted one if there are any.
    """
    first, last = _find_densest(_find_places(text, wanted), wanted, size)
    spare = max(0, size - (last - first))
    start = max(0, min(first - spare // 2, len(text) - size))
    end = min(len(text), start + size)
    # Move both ends to where a word begins or ends, if there is one nearby.
    if start and not text[start - 1].isspace():
        gap = re.search(r"\s", text[start : min(start + WORD_CHARS, first)])
        start += gap.end() if gap else 0
    if end < len(text) and not text[end].isspace():
        gap = re.search(r"\s\S*$", text[max(end - WORD_CHARS, last) : end])
        end -= len(gap[0]) if gap else 0
    return start, end


def _find_places(text: str, wanted: frozenset[str]) -> list[Place]:
    """Return the places of all terms.

    Numbers that are not wanted differ by length only: a table of them says little.
    """
    words = CHINESE.sub(lambda run: " " * len(run[0]), text)
    places = [(*w.span(), stem_word(fold_forms(w[0]))) for w in WORD.finditer(words)]
    for run in CHINESE.finditer(text):
        starts = range(run.start(), max(run.end() - 1, run.start() + 1))
        places += [(n, min(n + 2, run.end()), text[n : n + 2]) for n in starts]
    return sorted(
        (start, end, term if term in wanted else re.sub(r"\d", "#", term))
        for start, end, term in places
        if term not in STOP_WORDS
    )


def _find_densest(places: list[Place], wanted: Collection[str], size: int) -> Span:
    """Return the span within `size` that has the most different terms, by weight.

    A Chinese word is about three pairs of characters.
    """
    weights = {
        each: 3 * (each in wanted) + (3 if FULL_WORD.search(each) else each > "\u3000")
        for *_, each in places
    }
    held: Counter[str] = Counter()
    left, weight, asked, best, span = 0, 0, -1, (False, 0), (0, 0)
    for start, end, term in places:
        weight += 0 if held[term] else weights[term]
        asked = start if term in wanted else asked
        held[term] += 1
        while end - places[left][0] > size and places[left][0] < start:
            gone = places[left][2]
            held[gone] -= 1
            weight -= 0 if held[gone] else weights[gone]
            left += 1
        first = places[left][0]
        if (found := (asked >= first, weight)) > best:
            best, span = found, (first, end)
    return span
