"""Values that change in a conversation: the later of two statements holds.

Without a model this is a guess: two sentences with values of one unit, or a later one
that says that something has changed, which share enough words of the question that
found them. The guess only marks messages and removes nothing.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import combinations, product

from .terms import STOP_WORDS, extract_terms, stem_word

MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()  # noqa: SIM905
MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
WEEKDAY = (
    r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:days?)?\b|"
    r"(?:周|星期|礼拜)[一二三四五六日天]"
)
UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen "
    "fourteen fifteen sixteen seventeen eighteen nineteen"
)
WORDS = {word: str(n) for n, word in enumerate(UNITS.split())}
TENTHS = "twenty thirty forty fifty sixty seventy eighty ninety"
TENS = {word: 10 * n for n, word in enumerate(TENTHS.split(), start=2)}
PLACES = "third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
ORDINALS = {word: str(n) for n, word in enumerate(PLACES.split(), start=3)}
SCALES = {"hundred": 100, "thousand": 1000, "k": 1000, "million": 10**6}
ENGLISH = (
    rf"(?:(?:{'|'.join(TENS)})(?:-(?:{'|'.join(WORDS)}))?"
    rf"|{'|'.join([*WORDS, *ORDINALS])})\b"
    r"(?:\s(?:hundred|thousand)\b)?"
)
HAN = "零一二两三四五六七八九"
HAN_SCALES = {"十": 10, "百": 100, "千": 1000, "万": 10_000, "亿": 10**8}
CHINESE = rf"(?!一[共直起定样般些下边切旦])[{HAN}十百千万亿]{{1,12}}+"
DIGITS = r"\d[\d,]*+(?:\.\d++)?+(?:\s?(?:k|thousand|million)\b|[百千万亿])?"
NUMBER = rf"(?:{DIGITS}|{ENGLISH}|{CHINESE})"
MEASURE = (
    r"(?:hour|minute|second|day|week|month|year|mile|percent|met(?:er|re)|lit(?:er|re)|"
    r"time|point|million|billion|inch|feet|degree|star|gram|kilo|ton|euro|dollar|pound)"
)
HOUR = rf"(?:\d{{1,2}}|[{HAN}十]{{1,3}}|(?:{'|'.join(WORDS)})\b)"
# Each kind of value is a unit; the unit of a count is the words after it.
VALUE = re.compile(
    rf"""
    (?<! [a-z0-9_.,] ) (?:
        (?P<date> \d{{4}}-\d{{1,2}}-\d{{1,2}} | \d{{1,2}}/\d{{1,2}} (?: /\d{{2,4}} )?
          | {MONTH} \s (?:the\s)? \d{{1,2}} (?: st|nd|rd|th )? \b
          | \d{{1,2}} (?: st|nd|rd|th )? \s (?:of\s)? {MONTH}
          | (?:\d{{4}}年)? (?:\d{{1,2}}|{CHINESE}) 月
            (?: (?:\d{{1,2}}|{CHINESE}) [日号] )?
          | the \s \d{{1,2}} (?:st|nd|rd|th) \b
          | (?:\d{{1,2}}|{CHINESE}) 号 (?![楼线门])
          | in \s {MONTH} )
      | (?P<weekday> {WEEKDAY} )
      | (?P<time> \d{{1,2}}:\d\d (?: \s?[ap]\.?m\b )?+ | \d{{1,2}} \s?[ap]\.?m\b
          | {HOUR} (?: \so['’]clock | 点 (?: 半|一刻|三刻|\d\d分? )? )
          | (?: half|quarter ) \s (?: past|to ) \s {HOUR} | noon\b | midnight\b
          | at \s {HOUR} (?! \s* [a-z0-9%$€.,] ) )
      | (?P<money> [$€£¥] \s? {DIGITS}
          | {NUMBER} \s? (?: dollars | euros | pounds | bucks | [元块] ) )
      | (?P<share> {DIGITS} \s? (?: % | percent\b ) | 百分之 [\d.{HAN}十点]{{1,8}}
          | (?:a|one) \s (?:third|quarter|half)\b | half \s of\b
          | {CHINESE} 分之 {CHINESE} )
      | (?P<code> [a-z]{{1,12}} (?:[-_][a-z]{{1,12}}){{0,4}} [-_]?
            \d [a-z0-9_-]{{0,30}} (?:\.\d{{1,8}}+){{0,3}}
          | \d [\d-]{{0,12}} [a-f]{{1,3}} (?:\d [0-9a-f]*+)? \b (?! \s? (?:kg|m) )
          | \d{{1,4}}+ (?:\.\d{{1,4}}+){{2,3}} | \d{{1,8}}+-\d{{2,8}}+
          | (?<= [a-z]\s ) \d{{1,3}}+ (?:\.\d{{1,3}}+){{1,2}}
            (?! \s? (?: [a-z%]{{1,2}}\b | {MEASURE} ) ) )
      | (?P<count> {NUMBER} (?: 个半 | \s?[-–]\s? {DIGITS} )?+ )
        (?P<unit> (?: [ -]? [^\W\d_{HAN}十百千万亿]++ ){{0,3}} )
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)
# Words that announce a change.
CHANGE = re.compile(
    r"\b(?:(?:is|are|has|have|am) now|now (?:is|are|uses?|runs?)|instead|no longer|"
    r"these days|took over|gone over|the new|since (?:the|this|last)|rebooked|"
    r"from (?:today|this|next)|re-?named|(?:re-?)?scheduled|switched|swapped|"
    r"changed|moved|replaced|upgraded|postponed|"
    r"shifted|pushed|slipped|raised|lowered|extended|rewrote|turned out)\b|\bnow\W*$|"
    r"改|换|升级|升到|推迟|提前|挪|搬|调到|现在(?!的)|转行|不再|变成|鉴定结果",
    re.IGNORECASE,
)
CODE = re.compile(r"^(`{3,}|~{3,}).*?(?:^\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
SENTENCE = re.compile(r"(?<=[.!?])\s+|[。！？；\n]+")
# Limits: characters of a text, and statements of a search.
MOST_CHARS, MOST_STATEMENTS = 4_000, 60
# Words of the question that both sentences must have: a number and a share. One is
# enough if the later sentence speaks of a change.
LEAST_SHARED, SHARED = 2, 0.3
# Statements with this share of their words in common are about one thing.
CLOSE = 0.6
# Statements up to so many characters are aligned: by words, in Chinese by characters.
MOST_ALIGNED = 200
# Units of one kind: a meeting that is moved has another day and hour.
TIMES = frozenset(["date", "weekday", "time"])
PEOPLE = re.compile(
    r"\b(?:my |our )?((?:grand|step)?(?:ma|mum|mom|mother|dad|pa|father|parents|"
    r"brother|sister|son|daughter|wife|husband|partner|cousin|uncle|aunt|nephew|niece|"
    r"boss))\b|\b(?:I|we|my|our)\b|我?们?的?([大小表]?(?:妈|爸|爷|奶|外婆|外公|哥|姐|弟|妹|老婆|老公|"
    r"妻子|丈夫|儿子|女儿|姑|叔|舅))|我",
    re.IGNORECASE,
)
# Words that only frame a value.
FRAME = (
    STOP_WORDS - {"out", "off", "up", "down", "before", "after", "above", "below"}
) | frozenset(
    extract_terms(
        "0 plan schedule set book due start begin end open close run take last cost "
        "pay weigh get give make total currently today tomorrow moment still already "
        "around roughly exactly nearly almost least most latest update news new "
        "arrive leave return meet come need use fix"
    )
)
FRAME |= frozenset("是在为有要了已经现目前于定到会将就都也还又由被把给让从起至约个")
PIECE = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+"
)
# Longer numbers are not converted.
MOST_DIGITS = 12
# Words that ask, without saying about what.
ASKING = frozenset(
    extract_terms(
        "much many long far old often tall big time day days date number name version "
        "called kind type cost costs come currently scheduled take new current"
    )
)
ASKING_CHARS = frozenset("哪几多少什么谁吗呢怎何是的")


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a statement.

    `unit`: "money", "time" and the like, or the words after a count.
    """

    number: str
    unit: frozenset[str]


@dataclass(frozen=True, slots=True)
class ValueChange:
    """The message with the newest value, and the one with the next value."""

    newest: int
    following: int


@dataclass(frozen=True, slots=True)
class ValueStatement:
    """A sentence of message `seq`, and the words of its subject."""

    seq: int
    role: str
    text: str
    subject: frozenset[str]


class _ParsedStatement:
    """A statement about the subject of a question, with its values."""

    def __init__(self, statement: ValueStatement) -> None:
        self.seq, self.role = statement.seq, statement.role
        self.subject, self.text = statement.subject, statement.text
        self.values = frozenset(_read_values(statement.text))
        self.changes = bool(CHANGE.search(statement.text))
        relatives = PEOPLE.finditer(statement.text)
        # "i" is the speaker.
        self.people = {(found[1] or found[2] or "i").casefold() for found in relatives}
        hidden = VALUE.sub(_hide_value, statement.text[:MOST_ALIGNED])
        self.words = [*map(_fold, PIECE.findall(hidden))]


def _hide_value(found: re.Match[str]) -> str:
    return found[0].replace(found["count"] or found[0], " 0 ", 1)


def _fold(word: str) -> str:
    """Return the stem of a word, but a letter like "A" as it is: it is a name."""
    is_name = len(word) == 1 and word.isupper() and word != "I"
    return word if is_name else stem_word(word.casefold())


def read_statements(seq: int, role: str, text: str) -> Iterator[ValueStatement]:
    """Yield the sentences outside of code."""
    for sentence in SENTENCE.split(CODE.sub("\n", text[:MOST_CHARS])):
        words = (term for term in extract_terms(sentence) if not term[0].isdigit())
        if subject := frozenset(words):
            yield ValueStatement(seq, role, sentence, subject)


def _read_values(sentence: str) -> Iterator[Value]:
    for match in VALUE.finditer(sentence):
        kind = str(match.lastgroup)
        text = " ".join((match["count"] or match[kind]).casefold().split())
        if kind == "unit":
            yield Value(read_number(text), _read_unit(match["unit"]))
        else:
            yield Value(READERS.get(kind, read_number)(text), frozenset([kind]))


def _read_unit(text: str) -> frozenset[str]:
    """Return the words after a count, or "code" if there are none.

    In Chinese also the first character: "章", but not "个", which counts anything.
    """
    text = text.strip().rstrip("了啦")
    unit = {*extract_terms(text)}
    if text and not text[0].isascii() and text[0] != "个":
        unit.add(text[0])
    return frozenset(unit or ["code"])


def _read_date(text: str) -> str:
    """Return month and day: the year is often left out."""
    if iso := re.fullmatch(r"\d{4}-(\d+)-(\d+)", text):
        return f"{int(iso[1])}-{int(iso[2])}"
    if "/" in text:
        return text
    text = re.sub(r"^\d{4}年", "", text)
    numbers = re.findall(rf"\d+|{CHINESE}", text)
    named = [n for n, month in enumerate(MONTHS, start=1) if month in text]
    return "-".join([*map(str, named), *map(read_number, numbers)])


def _read_weekday(text: str) -> str:
    return text[:3] if text.isascii() else text.replace("天", "日")[-1]


def _read_time(text: str) -> str:
    """Return hour and minute on a 12-hour clock: morning or evening is rarely said."""
    minutes = 0
    if found := re.search(r":(\d\d)|点(\d\d)", text):
        minutes = int(found[1] or found[2])
    elif "半" in text or "half" in text:
        minutes = 30
    elif "一刻" in text or "quarter past" in text:
        minutes = 15
    elif "三刻" in text or "quarter to" in text:
        minutes = 45
    words = re.findall(rf"\d+|[{HAN}十]+|{'|'.join(WORDS)}", text)
    hour = int(read_number(words[0])) if words else 12
    hour -= " to " in text
    return f"{hour % 12}:{minutes:02}"


def _read_share(text: str) -> str:
    if "half" in text:
        return "50"
    if "third" in text or "quarter" in text:
        return text.split()[-1]
    return read_number(text.removeprefix("百分之"))


def read_number(text: str) -> str:
    """Return a number in digits, whatever words it is written in."""
    text = text.replace(",", "").strip("$€£¥ ")
    if text.endswith("个半"):
        return f"{read_number(text[:-2])}.5"
    found = re.match(r"(\d+(?:\.\d+)?)\s?(k|thousand|million|[百千万亿])?", text)
    if found and len(found[0]) < MOST_DIGITS:
        scale = (SCALES | HAN_SCALES).get(found[2] or "", 1)
        rest = text[found.end() :].strip()
        is_plain = not re.search(r"[\d.-]", rest)
        return f"{float(found[1]) * scale:g}" if is_plain else text
    if text[:1] and text[0] in HAN + "十百千万亿":
        return _read_chinese(text)
    if text in ORDINALS:
        return ORDINALS[text]
    head, _, scale = text.partition(" ")
    tens, _, ones = head.partition("-")
    if tens in TENS or tens in WORDS:
        value = TENS.get(tens, 0) + int(WORDS.get(ones or tens, "0"))
        return str(value * SCALES.get(scale, 1))
    return text


def _read_chinese(text: str) -> str:
    """Return a Chinese number in digits.

    "一万二" is 12,000: a digit at the end is of the next lower scale.
    """
    total = section = digit = 0
    scale = 10
    for char in text:
        if char in HAN:
            digit = max(0, "零一二三四五六七八九".find("二" if char == "两" else char))
        elif char in HAN_SCALES:
            scale = HAN_SCALES[char]
            if scale >= HAN_SCALES["万"]:
                total, section = (total + section + digit) * scale, 0
            else:
                section += (digit or 1) * scale
            digit = 0
        else:
            break
    ends_short = scale > HAN_SCALES["十"] and "零" not in text
    return str(total + section + digit * (scale // 10 if ends_short else 1))


READERS = {
    "date": _read_date,
    "time": _read_time,
    "share": _read_share,
    "weekday": _read_weekday,
    "code": str,
}


def find_changes(
    statements: Iterable[ValueStatement], asked: frozenset[str]
) -> dict[int, ValueChange]:
    """Return the messages whose values have changed, with the changes.

    Later messages of the same role give new values of the same unit for what the
    question asks.
    """
    asked = _list_subject(asked)
    least = SHARED * len(asked)
    close = [each for each in statements if len(each.subject & asked) >= least]
    # The latest first.
    close = sorted(close, key=lambda each: -each.seq)[:MOST_STATEMENTS]
    parsed = [_ParsedStatement(each) for each in close]
    changes: dict[int, ValueChange] = {}
    for new, old in combinations(parsed, 2):
        is_same = new.seq != old.seq and _is_same(new, old, asked)
        if is_same and _has_changed(old, new) and not _is_other(new, old):
            known = changes.get(old.seq)
            changes[old.seq] = ValueChange(known.newest if known else new.seq, new.seq)
    return changes


def _list_subject(asked: frozenset[str]) -> frozenset[str]:
    """Return the words of a question without those that only ask."""
    subject = {
        term for term in asked - ASKING if term.isascii() or not ASKING_CHARS & {*term}
    }
    return frozenset(subject) or asked


def _is_same(
    new: _ParsedStatement, old: _ParsedStatement, asked: frozenset[str]
) -> bool:
    """Return whether both are about what is asked, and of one role."""
    common = new.subject & old.subject
    shared = len(common & asked)
    # A Chinese word of two characters is one pair, and has another with its neighbour.
    words = len(asked) if all(map(str.isascii, asked)) else (len(asked) + 1) // 2
    is_close = len(common) >= max(
        LEAST_SHARED, CLOSE * min(len(new.subject), len(old.subject))
    )
    least = 1 if new.changes or is_close else min(LEAST_SHARED, words)
    return new.role == old.role and shared >= max(least, SHARED * len(asked))


def _is_other(new: _ParsedStatement, old: _ParsedStatement) -> bool:
    """Return whether both differ in more than a value: they are of two things.

    Of two people, of two places, or of 5 km on Monday and 8 km on Tuesday. In doubt
    nothing is replaced.
    """
    changed = _list_changed(old, new)
    if changed and old.people and new.people and old.people.isdisjoint(new.people):
        return True
    is_long = max(len(old.text), len(new.text)) > MOST_ALIGNED
    return not new.changes and (
        is_long or len(changed) > 1 or _is_reworded(old.words, new.words)
    )


def _is_reworded(words: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether words with a meaning are replaced by others in the same place."""
    spans: list[tuple[int, int, int, int]] = []
    matcher = SequenceMatcher(None, words, others, autojunk=False)
    for tag, first, last, start, end in matcher.get_opcodes():
        if tag == "equal":
            continue
        # A common Chinese character between two others is of the same word.
        if spans and first - spans[-1][1] == 1 and not words[first - 1].isascii():
            first, _, start, _ = spans.pop()
        spans.append((first, last, start, end))
    return any(
        not FRAME.issuperset(words[first:last])
        and not FRAME.issuperset(others[start:end])
        for first, last, start, end in spans
    )


def _list_changed(old: _ParsedStatement, new: _ParsedStatement) -> set[frozenset[str]]:
    """Return the units of the values that differ; all times are one unit."""
    changed = set()
    for value in old.values:
        numbers = [each.number for each in new.values if each.unit & value.unit]
        if numbers and value.number not in numbers:
            changed.add(TIMES if value.unit & TIMES else value.unit)
    return changed


def _has_changed(old: _ParsedStatement, new: _ParsedStatement) -> bool:
    """Return whether the new statement changes a value of the old one.

    An old value has a unit of which all new ones differ; or no unit is common, and the
    new statement speaks of a change.
    """
    is_known = any(a.unit & b.unit for a, b in product(old.values, new.values))
    is_announced = new.changes and not new.subject <= old.subject
    return bool(_list_changed(old, new)) or (is_announced and not is_known)
