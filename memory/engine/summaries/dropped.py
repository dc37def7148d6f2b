"""Details of messages that their summary dropped.

Numbers, names, dates, identifiers, decisions and open points, and hedges and negations
that were lost. Found without a model, in English and Chinese, by words: a sentence is
in the summary if enough of its words are. In doubt nothing is reported.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, islice
from typing import Literal, Self, get_args

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from ..compose import time_of
from ..search.terms import extract_terms
from . import facts, material, schemas

# Longer ones, far beyond any cap, are hardly summaries; checking them takes seconds.
MAX_CHECKED_CHARS = 20_000
# In the order of their weight: where there is little room, the first ones stay.
Kind = Literal[
    *("decision", "open", "negation", "hedge"),
    *("identifier", "date", "number", "name"),
]
KINDS = get_args(Kind)
# Limits of a version's list: in all, and of one kind.
MAX_LISTED, MAX_OF_KIND = 12, 4
MAX_CHARS = 140
# Limits of the compared characters: of a message, as longer ones are documents, and in
# all.
MAX_READ, MAX_READ_OF_ALL = 20_000, 100_000
# Shares of a sentence's words: if the summary has less than ABSENT, the sentence is not
# in it; if one of its sentences has at least SAME, that says the same.
ABSENT, SAME = 0.4, 0.75
LEAST_TERMS = 2
# Limits of the sentences that one is compared with, so that the time stays linear:
# decisions after an open point, and phrases without a hedge.
MOST_LATER, MOST_PLAIN = 200, 1_000

SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n+")
CLAUSE_END = re.compile(
    r"[,;:]\s+|[，；、：]|(?<!\s)\s++(?=(?:but|and|so|because|though)\s)"
    r"|(?=但|不过|因为|所以)"
)
# Units and the like, which only look like names.
SMALL = re.compile(r"[A-Z]{1,4}")
NO_WORDS = re.compile(r"\W*")


def _compile_cues(english: str, chinese: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{english})\b|{chinese}", re.IGNORECASE)


DECISION = _compile_cues(
    r"(?:i|we|they|he|she)(?:['’]ve| have| had)? (?:decided|chose|agreed|settled|opted)"
    r"|let['’]?s (?:go with|use|stick with|take)"
    r"|(?:i|we)(?:['’]ll| will) (?:go with|use|take|stick with|choose)|decision",
    r"决定|就(?:用|选|定)|选定|定下来|敲定|说好",
)
OPEN = _compile_cues(
    r"still (?:need|have) to|still open|(?:not|haven['’]t)(?: yet)? decided|undecided"
    r"|to be (?:decided|confirmed|determined)|tb[dc]|open question"
    r"|need to (?:find out|check|confirm|ask)"
    r"|(?:i|we)(?:['’]ll| will) (?:check|find out|ask|confirm|get back)",
    r"待定|还没(?:决定|定|想好)|尚未(?:决定|确定)|有待|(?:还要|回头再?)(?:问|查|确认)",
)
HEDGE = _compile_cues(
    r"maybe|perhaps|possibly|probably|might|could be|may be|i think|i guess|i suppose"
    r"|not sure(?: if| whether| yet)?|unsure|likely|tentatively|roughly",
    r"可能|也许|或许|大概|不确定|说不定|好像|估计",
)
# Words of a summary that leave open whether something is so.
SOFT = _compile_cues(
    r"consider\w*|plan\w*|hop(?:es?|ing)|want\w*|possib\w+|potential\w*|tentative"
    r"|unconfirmed|unclear|uncertain|may|could|would|if|whether|think\w*|believ\w*"
    r"|suspect\w*|unsure|about|around|estimat\w*|expect\w*",
    r"考虑|打算|计划|希望|想|未定|如果|是否|约",
)
NEGATION = _compile_cues(
    r"not(?! only| just| bad| sure)|never|no longer|without|cannot|neither|nor"
    r"|none of|no(?! (?:problem|worries|doubt|idea|one knows|thanks|matter))"
    r"|(?:ca|wo|do|does|did|is|are|was|were|has|have|had|should|would|could|must)n['’]t",
    r"不(?!错|过|仅|但|好意思|同|断|少|管|客气|如|知|确定)|没(?!问题|关系|事|准)"
    r"|从未|尚未|未(?!来)|别(?=再|用|去|给|把|让|忘|放|买)|禁止|无法",
)
# Other words that deny; a summary with one of them has not lost a negation.
DENIAL = _compile_cues(
    r"avoid\w*|refus\w*|reject\w*|declin\w*|stop\w*|cancel\w*|hat(?:es?|ed)|dislik\w*"
    r"|exclud\w*|against|lack\w*|fail\w*|quit\w*|instead|rather|unless"
    r"|except|allerg\w*|forbid\w*|forbidden|bann\w*|skip\w*|ruled out|un\w{4,}|only",
    r"\w-+free\b|避免|拒绝|取消|讨厌|排除|缺|失败|除了|过敏|忌|停|戒|只",
)


@dataclass(frozen=True, slots=True)
class DroppedDetail:
    """A detail that message `seq` has and the summary lacks or changes."""

    seq: int
    kind: Kind
    text: str

    def __str__(self) -> str:
        """Return the form in which it is stored among the flags of a version."""
        return f"#{self.seq} {self.kind}: {self.text}"

    @classmethod
    def parse_line(cls, line: str) -> Self | None:
        """Parse the form of `str()`; return None for other lines."""
        found = re.fullmatch(rf"#(\d{{1,18}}) ({'|'.join(KINDS)}): (.+)", line)
        return cls(int(found[1]), found[2], found[3]) if found else None


@dataclass(frozen=True, slots=True)
class DroppedCount:
    """The number of messages with a dropped detail of a kind.

    `spans` are their numbers, as in "#3, #5–#8".
    """

    kind: Kind
    count: int
    spans: str

    def __str__(self) -> str:
        """Return the form in which it is stored among the flags of a version."""
        return f"{self.count} {self.kind}: {self.spans}"

    @classmethod
    def parse_line(cls, line: str) -> Self | None:
        """Parse the form of `str()`; return None for other lines."""
        found = re.fullmatch(rf"(\d{{1,18}}) ({'|'.join(KINDS)}): (.+)", line)
        return cls(found[2], int(found[1]), found[3]) if found else None


@dataclass(frozen=True)
class _Phrase:
    """A sentence or clause of a message."""

    seq: int
    text: str

    @cached_property
    def words(self) -> frozenset[str]:
        """The terms without the cues; cached, as most phrases are never compared."""
        bare = self.text
        for cue in (DECISION, OPEN, NEGATION, HEDGE):
            bare = cue.sub(" ", bare)
        return frozenset(extract_terms(bare))


def find_dropped(messages: Sequence[BaseMessage], summary: str) -> list[DroppedDetail]:
    """Return the details that are not in the summary, by weight.

    All details of the user's messages, and decisions and open points of the model's:
    most facts of a long reply are meant to be dropped. Messages without a number as
    their id, results of tools and questions are not compared.
    """
    known = list(_select_compared(messages))
    found = [
        *_find_sentences(known, summary),
        *_find_changed(known, summary),
        *_find_facts(known, summary),
    ]
    return _rank_dropped(found)


def find_dropped_by_merge(
    texts: Sequence[str], messages: Sequence[BaseMessage], summary: str
) -> list[DroppedDetail]:
    """Return the facts of merged summaries that are not in the new one.

    Each has the first message that says it.
    """
    known = [(int(each.id or 0), each.text) for each in _select_compared(messages)]
    missing = [each for lost in facts.find_missing(texts, [summary]) for each in lost]
    found = []
    for fact in missing:
        seq = next((seq for seq, text in known if fact.text in text), None)
        is_small = SMALL.fullmatch(fact.text)
        if fact.kind in KINDS and seq is not None and not is_small:
            found.append(DroppedDetail(seq, fact.kind, _shorten_quote(fact.text)))
    return _rank_dropped(found)


def _select_compared(messages: Sequence[BaseMessage]) -> Iterator[BaseMessage]:
    """Yield the messages that are compared, up to MAX_READ_OF_ALL characters."""
    room = MAX_READ_OF_ALL
    for message in messages:
        is_said = isinstance(message, (HumanMessage, AIMessage))
        if is_said and room > 0 and (message.id or "").isdecimal():
            yield message
            room -= len(message.text[:MAX_READ])


def _rank_dropped(found: Sequence[DroppedDetail]) -> list[DroppedDetail]:
    return sorted(dict.fromkeys(found), key=lambda each: KINDS.index(each.kind))


def check_written(
    text: str, sources: Sequence[str], messages: Sequence[BaseMessage]
) -> dict[str, list[str]]:
    """Return the flags of a text that a user has written for these messages.

    `sources` are summaries of earlier messages that it replaces as well.
    """
    if len(text) > MAX_CHECKED_CHARS:
        return {}
    flags = {"unsupported": find_invented(text, sources, messages)}
    flags |= to_flags(find_dropped(messages, text))
    return {name: lines for name, lines in flags.items() if lines}


def find_invented(
    text: str, sources: Sequence[str], messages: Sequence[BaseMessage]
) -> list[str]:
    """Return the facts of a text that neither its sources nor its messages have."""
    said = [*sources, *map(material.describe_text, messages)]
    dates = list(filter(None, map(time_of, messages)))
    return facts.find_unsupported(schemas.without_times(text), said, dates)


def to_flags(found: Sequence[DroppedDetail]) -> dict[str, list[str]]:
    """Return the form in which a version stores it.

    "dropped" lists the first of each kind, each text once; "dropped_from" counts the
    messages of each kind, and names them all.
    """
    listed: list[DroppedDetail] = []
    counted: list[DroppedCount] = []
    for kind, group in groupby(found, key=lambda each: each.kind):
        firsts: dict[str, DroppedDetail] = {}
        seqs = set()
        for each in group:
            firsts.setdefault(each.text, each)
            seqs.add(each.seq)
        listed += [*firsts.values()][:MAX_OF_KIND]
        counted.append(DroppedCount(kind, len(seqs), _to_spans(seqs)))
    if not listed:
        return {}
    return {
        "dropped": list(map(str, listed[:MAX_LISTED])),
        "dropped_from": list(map(str, counted)),
    }


def _to_spans(seqs: Iterable[int]) -> str:
    """Return numbers of messages as in "#3, #5–#8"."""
    # Consecutive numbers have the same distance from their indices.
    runs = groupby(enumerate(sorted(seqs)), key=lambda pair: pair[1] - pair[0])
    ends = [[seq for _, seq in run] for _, run in runs]
    return ", ".join(
        f"#{run[0]}–#{run[-1]}" if len(run) > 1 else f"#{run[0]}" for run in ends
    )


def _find_facts(
    messages: Sequence[BaseMessage], summary: str
) -> Iterator[DroppedDetail]:
    by_user = [each for each in messages if isinstance(each, HumanMessage)]
    texts = [
        "\n".join(each for each in _split_sentences(message) if not _is_question(each))
        for message in by_user
    ]
    for message, missing in zip(
        by_user, facts.find_missing(texts, [summary]), strict=True
    ):
        for fact in missing:
            if fact.kind in KINDS and not SMALL.fullmatch(fact.text):
                yield DroppedDetail(
                    int(message.id or 0), fact.kind, _shorten_quote(fact.text)
                )


def _find_sentences(
    messages: Sequence[BaseMessage], summary: str
) -> Iterator[DroppedDetail]:
    """Return decisions and open points whose words are not in the summary."""
    words = frozenset(extract_terms(summary))
    said = [
        each for message in messages for each in _read_said(message, _split_sentences)
    ]
    decisions: list[_Phrase] = []
    found = []
    # Backwards, so that later decisions are known when a point is checked.
    for each in reversed(said):
        is_open, is_decision = OPEN.search(each.text), DECISION.search(each.text)
        if (is_open or is_decision) and _is_absent(each, words):
            later = decisions[-MOST_LATER:]
            if not is_open:
                found.append(
                    DroppedDetail(each.seq, "decision", _shorten_quote(each.text))
                )
            elif all(_overlap_of(each.words, one.words) < ABSENT for one in later):
                found.append(DroppedDetail(each.seq, "open", _shorten_quote(each.text)))
        if is_decision and not is_open:
            decisions.append(each)
    return reversed(found)


def _is_absent(said: _Phrase, words: frozenset[str]) -> bool:
    return len(said.words) >= LEAST_TERMS and _overlap_of(said.words, words) < ABSENT


def _find_changed(
    messages: Sequence[BaseMessage], summary: str
) -> Iterator[DroppedDetail]:
    """Yield what users said with a hedge or negation, and the summary says without."""
    lines = [
        (line, frozenset(extract_terms(NEGATION.sub(" ", HEDGE.sub(" ", line)))))
        for line in SENTENCE_END.split(summary)
    ]
    by_user = [each for each in messages if isinstance(each, HumanMessage)]
    said = [each for message in by_user for each in _read_said(message, _split_clauses)]
    for cue, kind, softer in ((NEGATION, "negation", DENIAL), (HEDGE, "hedge", SOFT)):
        cues = (cue, softer)
        changed = [
            each
            for each in said
            if cue.search(each.text) and _is_without(each, cues, lines)
        ]
        if not changed:
            continue
        # If it was also said plainly, the summary need not be wrong.
        plain = (each.words for each in said if not cue.search(each.text))
        plainly = [*islice(dict.fromkeys(plain), MOST_PLAIN)]
        for each in changed:
            if all(_overlap_of(each.words, words) < SAME for words in plainly):
                yield DroppedDetail(each.seq, kind, _shorten_quote(each.text))


def _is_without(
    said: _Phrase,
    cues: Sequence[re.Pattern[str]],
    lines: Sequence[tuple[str, frozenset[str]]],
) -> bool:
    """Return whether lines say the same, and none of them with one of the cues."""
    if len(said.words) < LEAST_TERMS:
        return False
    same = [line for line, words in lines if _overlap_of(said.words, words) >= SAME]
    return bool(same) and not any(cue.search(line) for cue in cues for line in same)


def _read_said(
    message: BaseMessage, split: Callable[[BaseMessage], list[str]]
) -> Iterator[_Phrase]:
    for text in split(message):
        if not _is_question(text):
            yield _Phrase(int(message.id or 0), text)


def _is_question(text: str) -> bool:
    """Return whether the text ends in a question mark, 吗 or 呢.

    Read backwards: a search would try each of many marks as the last.
    """
    backwards = text[::-1]
    end = NO_WORDS.match(backwards)
    after = end[0] if end else ""
    return "?" in after or "？" in after or backwards[len(after) :][:1] in {*"吗呢"}


def _split_sentences(message: BaseMessage) -> list[str]:
    parts = SENTENCE_END.split(message.text[:MAX_READ])
    return [part.strip() for part in parts if part.strip()]


def _split_clauses(message: BaseMessage) -> list[str]:
    # A question states nothing.
    stated = (each for each in _split_sentences(message) if not _is_question(each))
    parts = (part for each in stated for part in CLAUSE_END.split(each))
    return [part.strip() for part in parts if part and part.strip()]


def _overlap_of(words: frozenset[str], others: frozenset[str]) -> float:
    return len(words & others) / len(words) if words else 0.0


def _shorten_quote(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MAX_CHARS else text[: MAX_CHARS - 1].rstrip() + "…"
