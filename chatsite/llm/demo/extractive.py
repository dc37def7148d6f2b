"""A summariser without a model: keeps the sentences that carry facts, word for word.

Deterministic. Each text may begin with who said it ("User: ", "Assistant: "), and every
line of the summary does so again: no text can put words into another mouth.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MAX_LINE_CHARS = 240
MAX_GREETING_CHARS = 8

SPEAKER = re.compile(r"((?:User|Assistant|Tool)(?: \([\d-]{1,10}\))?: )")
SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])\s*|\n+")
PERSONAL = re.compile(
    r"\b(?:i'm|i am|my|mine|call me|remember"
    r"|i(?:'ve| also| really| just| always| never)?"
    r" (?:like|love|hate|prefer|live|work|want|need|have|bought|moved|was|will))\b"
    r"|我(?:叫|是|的|喜欢|爱|讨厌|住|想|要|在|有|今年)|叫我|记住|记得",
    re.IGNORECASE,
)
FACT = re.compile(
    r"\d|(?<=[a-z,;] )[A-Z][a-z]+|[《“@]|https?:"
    r"|[一二三四五六七八九十百千万两]+(?:年|月|日|号|点|元|块|岁|个)"
)
QUESTION_START = re.compile(
    r"\W*(?:what|who|whom|whose|where|when|which|why|how|do|did|does|is|are|was|were|"
    r"can|could|will|would|should|tell me|remind me)\b",
    re.IGNORECASE,
)
QUESTION_END = re.compile(
    r"[?？]\W*$|(?:什么|哪|几点|几个|几岁|多少|怎么|是谁)[^。！]*$|(?:吗|呢)\W*$"
)
# Only the ends of a text are looked at: a long hostile one would take seconds.
MAX_QUESTION_CHARS = 200
# Means nothing any more where the messages are not at hand.
MESSAGE_NUMBER = re.compile(r"\bmessages? \d|第 ?\d+")
NEW_FACT = re.compile(r"\d[\w.:,-]*|(?<=[a-z,;] )[A-Z][a-z]+")


@dataclass(frozen=True, slots=True)
class Line:
    """One sentence with who said it, and how much it deserves to stay (0..4)."""

    index: int
    text: str
    rank: int

    @property
    def cost(self) -> int:
        # Plus one byte for the line break.
        return count_bytes(self.text) + 1


def count_bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def split_sentences(text: str) -> list[str]:
    """Sentences of English or Chinese text, without surrounding space."""
    return [part.strip() for part in SENTENCE_END.split(text) if part.strip()]


def is_question(text: str) -> bool:
    head, tail = text[:MAX_QUESTION_CHARS], text[-MAX_QUESTION_CHARS:]
    return bool(QUESTION_START.match(head) or QUESTION_END.search(tail))


def is_personal(sentence: str) -> bool:
    """Whether somebody says something about themselves in it."""
    has_mark = PERSONAL.search(sentence.replace("’", "'"))
    return bool(has_mark) and not is_question(sentence)


def summarize_extractively(
    texts: Sequence[str], *, max_tokens: int, previous: Sequence[str] = ()
) -> str:
    """The sentences worth keeping, in their order, in at most `max_tokens` tokens.

    What the user says of themselves comes first, then facts, then the user's other
    first sentences. Where room ends, both the oldest and the newest have a place.
    `previous`: summaries that this one replaces.
    """
    lines = list(_unique(_read_lines(texts, previous)))
    kept = _choose([line for line in lines if line.rank], max_tokens * 4)
    if not kept:
        # Small talk, or the beginning of it, is better than nothing.
        return _cut(lines[0].text, max_tokens * 4) if lines else ""
    return "\n".join(line.text for line in sorted(kept, key=lambda line: line.index))


def _cut(text: str, size: int) -> str:
    return text.encode("utf-8", "replace")[:size].decode("utf-8", "ignore")


def _choose(lines: list[Line], budget: int) -> list[Line]:
    kept = []
    for rank in sorted({line.rank for line in lines}, reverse=True):
        for line in _from_both_ends([each for each in lines if each.rank == rank]):
            if line.cost <= budget:
                budget -= line.cost
                kept.append(line)
    return kept


def _read_lines(texts: Sequence[str], previous: Sequence[str]) -> Iterator[Line]:
    index = 0
    known = ""
    for text in [*_split_lines(previous), *texts]:
        match = SPEAKER.match(text)
        speaker = match.group() if match else ""
        for position, sentence in enumerate(split_sentences(text[len(speaker) :])):
            rank = _rank(speaker, sentence, known, is_first=position == 0)
            if rank is not None:
                yield Line(index, _shorten(speaker + sentence), rank)
                index += 1
            known += sentence + " "


def _split_lines(summaries: Sequence[str]) -> Iterator[str]:
    for summary in summaries:
        yield from summary.splitlines()


def _rank(speaker: str, sentence: str, known: str, *, is_first: bool) -> int | None:
    """4 the user about themselves, 3 a fact of the user, 2 one that the assistant
    brought up, 1 and 0 first sentences of either; None: not worth keeping.
    """
    is_user = not speaker.startswith(("Assistant", "Tool"))
    if is_user and is_personal(sentence):
        return 4
    is_fact = FACT.search(sentence) and not is_question(sentence)
    if is_fact and is_user:
        return 3
    is_new = any(fact not in known for fact in NEW_FACT.findall(sentence))
    if is_fact and is_new and not MESSAGE_NUMBER.search(sentence):
        return 2
    if not is_first:
        return None
    # What was asked was answered; hellos say nothing.
    is_worth_it = len(sentence) > MAX_GREETING_CHARS and not is_question(sentence)
    return int(is_user and is_worth_it)


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_LINE_CHARS else text[: MAX_LINE_CHARS - 1] + "…"


def _unique(lines: Iterator[Line]) -> Iterator[Line]:
    seen = set()
    for line in lines:
        if line.text not in seen:
            seen.add(line.text)
            yield line


def _from_both_ends(lines: list[Line]) -> Iterator[Line]:
    """Oldest, newest, second oldest, second newest, ..."""
    left, right = 0, len(lines) - 1
    while left <= right:
        yield lines[left]
        if left < right:
            yield lines[right]
        left, right = left + 1, right - 1
