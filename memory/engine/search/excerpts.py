"""Which of the messages that a search found are shown to the model, and how much of
them: only what fits the question well enough, and of a long one an excerpt.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage, HumanMessage

from ..compose import compose, quote_message
from ..tokens import TokenCounter
from .ranking import Hit, read_query
from .terms import CHINESE, WORD, stem

# A hit with less than this share of the score that a message with every word of the
# question could have is taken for chance. What it costs and saves: docs/memory.md.
MIN_FIT = 0.12
# A hit that takes more than one such part of the room is shown in part.
PARTS = 3
MARK = "…"
# The ends of an excerpt move by at most so many characters to the end of a word.
WORD_CHARS = 20

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Note:
    """A message as it is quoted; `span` says which part of its text that is."""

    seq: int
    message: BaseMessage
    span: Span | None = None


def choose(
    hits: Sequence[Hit],
    messages: Mapping[int, BaseMessage],
    question: str,
    *,
    room: int,
    count_tokens: TokenCounter,
) -> list[Note]:
    """The best hits that fit into `room` tokens, in the order they were said."""
    measure = _Measure(count_tokens)
    wanted = read_query(question, ()).terms
    room -= measure.frame
    most, notes = room // PARTS, []
    for hit in hits:
        if hit.fit < MIN_FIT or hit.seq not in messages:
            continue
        note = _make_note(hit.seq, messages[hit.seq], wanted, measure, most)
        if (size := measure(note.message)) <= room:
            notes.append(note)
            room -= size
    return sorted(notes, key=lambda note: note.seq)


def cut(message: BaseMessage, span: Span) -> BaseMessage:
    """A copy that has only this part of the text, and shows that it is a part."""
    start, end = span
    text = message.text
    content = MARK * (start > 0) + text[start:end] + MARK * (end < len(text))
    marked = message.additional_kwargs | {"excerpt": True}
    return message.model_copy(update={"content": content, "additional_kwargs": marked})


class _Measure:
    """What notes take of a context, in tokens."""

    def __init__(self, count_tokens: TokenCounter) -> None:
        self.count_tokens = count_tokens
        self.nothing = count_tokens([HumanMessage("")])
        frame = compose(system_prompt="", recalled=[HumanMessage("")]).messages
        self.frame = count_tokens(frame)

    def __call__(self, message: BaseMessage) -> int:
        quote = HumanMessage(quote_message(message) + "\n")
        # One more, as the counts of parts are rounded each for itself.
        return self.count_tokens([quote]) - self.nothing + 1


def _make_note(
    seq: int, message: BaseMessage, wanted: frozenset[str], measure: _Measure, most: int
) -> Note:
    """The message as a note of `most` tokens, or whole where that is too little."""
    whole = measure(message)
    if whole <= most:
        return Note(seq, message)
    around = measure(cut(message, (0, 0)))
    size = len(message.text) * (most - around) // max(whole - around, 1)
    if size < WORD_CHARS:
        return Note(seq, message)
    span = find_span(message.text, wanted, size)
    return Note(seq, cut(message, span), span)


def find_span(text: str, wanted: frozenset[str], size: int) -> Span:
    """The part of up to `size` characters with most of the wanted terms; of several
    the first, and the beginning where there is none."""
    first, last = _find_densest(_find_places(text, wanted), size)
    spare = max(0, size - (last - first))
    start = max(0, min(first - spare // 2, len(text) - size))
    end = min(len(text), start + size)
    # Move both ends to where a word begins or ends, if there is one nearby.
    if start and not text[start - 1].isspace():
        gap = re.search(r"\s", text[start : min(start + WORD_CHARS, first)])
        start += gap.end() if gap else 0
    if end < len(text) and not text[end].isspace():
        after = max(end - WORD_CHARS, last)
        gap = re.search(r"\s\S*$", text[after:end])
        end = after + gap.start() if gap else end
    return start, end


def _find_places(text: str, wanted: frozenset[str]) -> list[tuple[int, int, str]]:
    """Where the wanted terms are: start, end, term."""
    words = CHINESE.sub(lambda run: " " * len(run[0]), text)
    places = [
        (word.start(), word.end(), stem(word[0].casefold()))
        for word in WORD.finditer(words)
    ]
    for run in CHINESE.finditer(text):
        starts = range(run.start(), max(run.end() - 1, run.start() + 1))
        places += [(n, min(n + 2, run.end()), text[n : n + 2]) for n in starts]
    return sorted(place for place in places if place[2] in wanted)


def _find_densest(places: Sequence[tuple[int, int, str]], size: int) -> Span:
    """From which place to which one most different terms are, within `size`."""
    held: Counter[str] = Counter()
    left, best, span = 0, (0, 0), (0, 0)
    for start, end, term in places:
        held[term] += 1
        while end - places[left][0] > size and places[left][0] < start:
            held -= Counter([places[left][2]])
            left += 1
        if (found := (len(held), held.total())) > best:
            best, span = found, (places[left][0], end)
    return span
