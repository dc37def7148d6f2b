"""What the demo model can know: every sentence it was sent, and where it stands.

Reads the messages of a request, including the quoted history that comes in elements
such as <summary messages="1-20" version="3">…</summary>.
"""

import html
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from langchain_core.messages import BaseMessage

from .extractive import SPEAKER, is_question, split_sentences

FENCES = ("history", "pinned", "recalled")
SUMMARY = re.compile(
    r'<summary messages="(\d{1,9})-(\d{1,9})" version="(\d{1,9})"[^>]*>(.*?)</summary>',
    re.DOTALL,
)
QUOTED = re.compile(
    r'<message n="(\d{0,9})" role="(\w+)"[^>]*>(.*?)</message>', re.DOTALL
)
# Summaries of real models speak of the user; the user says "I".
THIRD_PERSON = [
    (re.compile(r"\b(?:the )?(?:user|human)'s\b", re.IGNORECASE), "my"),
    (re.compile(r"\b(?:the )?(?:user|human) is\b", re.IGNORECASE), "I am"),
    (re.compile(r"\b(?:the )?(?:user|human)\b", re.IGNORECASE), "I"),
    (re.compile(r"\bI (\w{3,})s\b"), r"I \1"),
    (re.compile("用户"), "我"),
]
# Terms that ask for one another, as find_terms() gives them.
RELATED = [
    frozenset(group.split("|"))
    for group in (
        "go|trip|travel|visit|jorney|plann",
        "eat|vegetarian|vegan|food|meal|allergic",
        "liv|hom|hous|flat|address",
        "work|job|company",
        "cost|pric|budget|pay|euro|dollar|spend",
        "old|born|birthday|year",
        "sport|team|football",
        "phon|telephon|mobil|call",
    )
]
CHINESE = re.compile(r"[\u3400-\u9fff]+")
WORD = re.compile(r"[a-z0-9]+(?:[.,:/'-][a-z0-9]+)*|[^\W\d_a-z\u3400-\u9fff]+")
STOP_WORDS = frozenset(
    re.findall(
        r"\S+",
        """
        a about again all also am an and any are as at be been but by can come coming
        could did do does earlier for from had has have he her his how i i'm i've if
        in into is it its just know let me mine my no not now of on or our please
        remember remind said say she so some tell that the their them then there they
        this to told up us was we were what what's when where which who whom whose
        why will with would you your
        """,
    )
)
STOP_BIGRAMS = frozenset(
    re.findall(
        r"\S+",
        """
        什么 我的 你的 是什 我在 我是 你知 知道 道我 还记 记得 得我 我说 说过 过的 多少
        告诉 诉我 请告 哪里 在哪 几个 是多 么时 时候 是谁 怎么 我们 的是 是几
        """,
    )
)
IRREGULAR = {
    "ate": "eat",
    "began": "begin",
    "bought": "buy",
    "broke": "break",
    "built": "build",
    "came": "come",
    "chose": "choos",
    "drank": "drink",
    "drove": "driv",
    "fell": "fall",
    "flew": "fly",
    "found": "find",
    "forgot": "forget",
    "gave": "giv",
    "goes": "go",
    "going": "go",
    "got": "get",
    "kept": "keep",
    "left": "leav",
    "lost": "los",
    "made": "mak",
    "met": "meet",
    "paid": "pay",
    "ran": "run",
    "saw": "see",
    "sold": "sell",
    "spent": "spend",
    "studies": "study",
    "studied": "study",
    "taught": "teach",
    "took": "tak",
    "went": "go",
    "won": "win",
    "wrote": "writ",
}
ENDINGS = re.compile(r"(?<=[a-z]{3})(?:'s|ing|ed|es|s|e)$")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a statement stands: a message, or a summary of a range of them."""

    first: int | None = None
    last: int | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence: as it is understood ("I live in Oslo") and as it stands there."""

    text: str
    shown: str
    is_user: bool
    place: Place
    terms: frozenset[str] = field(repr=False)

    @property
    def is_question(self) -> bool:
        return is_question(self.text)


@dataclass(frozen=True, slots=True)
class View:
    """What the model was sent: statements, oldest first, and how it was made up."""

    statements: list[Statement]
    summaries: list[Place]
    message_count: int


def read_view(messages: Sequence[BaseMessage]) -> View:
    """Everything but the system prompt and the last message, which is the question."""
    statements: list[Statement] = []
    summaries: list[Place] = []
    count = 0
    for message in messages:
        fenced = _find_fenced(message.text) if message.type == "human" else None
        if fenced is not None:
            found = list(_read_fenced(fenced))
            statements += found
            summaries += {s.place: None for s in found if s.place.version}
        elif message.type in ("human", "ai"):
            count += 1
            statements += _read_message(message)
    # Pinned and recalled messages are older than the window they stand around.
    known = sorted(
        (s for s in statements if s.place.first), key=lambda s: s.place.first or 0
    )
    unknown = [s for s in statements if not s.place.first]
    return View(list(_unique(known + unknown)), summaries, count)


def _find_fenced(text: str) -> str | None:
    """What stands between <history> and </history> at the end of the text."""
    for name in FENCES:
        if text.endswith(f"\n</{name}>"):
            _, opened, body = text.partition(f"<{name}>\n")
            return body if opened else None
    return None


def _read_fenced(text: str) -> Iterator[Statement]:
    for first, last, version, body in SUMMARY.findall(text):
        place = Place(int(first), int(last), int(version))
        yield from _read_summary(html.unescape(body), place)
    for number, role, body in QUOTED.findall(text):
        place = Place(first=int(number)) if number else Place()
        yield from _split(html.unescape(body), role == "user", place)


def _read_summary(text: str, place: Place) -> Iterator[Statement]:
    for line in text.splitlines():
        speaker = SPEAKER.match(line)
        if speaker:
            is_user = speaker.group().startswith("User")
            yield from _split(line[speaker.end() :], is_user, place)
        else:
            yield from _split(line, True, place)


def _read_message(message: BaseMessage) -> Iterator[Statement]:
    number = message.id or ""
    place = Place(first=int(number)) if number.isdecimal() else Place()
    return _split(message.text, message.type == "human", place)


def _split(text: str, is_user: bool, place: Place) -> Iterator[Statement]:
    for shown in split_sentences(text):
        sentence = _to_first_person(shown) if place.version else shown
        terms = frozenset(find_terms(sentence))
        yield Statement(sentence, shown, is_user, place, terms)


def _unique(statements: Iterable[Statement]) -> Iterator[Statement]:
    """Without what stands both in the window and among the recalled messages."""
    seen = set()
    for statement in statements:
        key = (statement.text, statement.is_user, statement.place)
        if key not in seen:
            seen.add(key)
            yield statement


def _to_first_person(text: str) -> str:
    text = text.replace("’", "'")
    for pattern, replacement in THIRD_PERSON:
        text = pattern.sub(replacement, text)
    return text


def find_terms(text: str) -> Iterator[str]:
    """Words without their endings, and pairs of Chinese characters."""
    text = text.lower().replace("’", "'")
    for word in WORD.findall(text):
        if word not in STOP_WORDS:
            # Colour and color are one word.
            word = IRREGULAR.get(word) or ENDINGS.sub("", word)
            yield word.replace("our", "or")
    for run in CHINESE.findall(text):
        for start in range(len(run) - 1):
            if (pair := run[start : start + 2]) not in STOP_BIGRAMS:
                yield pair


def search(
    statements: Sequence[Statement], query: str
) -> list[tuple[float, Statement]]:
    """Statements that share terms with the query, best first, later before earlier.

    Of the assistant only what has all the terms: it mostly repeats the user.
    """
    terms = set(find_terms(query))
    related = {t for group in RELATED if group & terms for t in group} - terms
    counts = Counter(t for s in statements for t in s.terms & (terms | related))
    hits = []
    for position, statement in enumerate(statements):
        shared = statement.terms & (terms | related)
        is_close = statement.is_user or shared == terms
        if shared and is_close and not statement.is_question:
            score = sum(
                math.log(1 + len(statements) / counts[t]) * (1 if t in terms else 0.4)
                for t in shared
            )
            # Of two equal ones the shorter says it more clearly.
            score /= 1 + 0.01 * len(statement.terms)
            hits.append((score, statement.is_user, position, statement))
    hits.sort(key=lambda hit: hit[:3], reverse=True)
    return [(score, statement) for score, _, _, statement in hits]
