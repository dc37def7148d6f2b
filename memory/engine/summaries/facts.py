"""Facts of a text that can be checked without a model, in English and Chinese.

Numbers, dates, names, quotations and identifiers. A summary is compared with the
messages it replaces. In doubt the summary is right: if a fact can be read in several
ways, it counts as supported if one of them is in a message.
"""

import calendar
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

Kind = Literal["identifier", "quote", "date", "number", "name"]

# Every part has a greatest length, so that no text is slow to read.
IDENTIFIER = re.compile(
    r"""
    (?P<url>https?://[^\s<>"'`\x80-\U0010ffff]{1,500})
    | (?P<email>(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5})
    | (?P<uuid>(?<!\w)[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?!\w))
    | (?P<path>
        (?<![\w/.:\\<])(?:~|\.{1,2}|[A-Za-z]:)?[/\\][\w.@+-]{1,80}(?:[/\\][\w.@+-]{1,80}){0,20}
      | (?<![\w/.:@+-])[\w@+-][\w.@+-]{0,80}(?:/[\w.@+-]{1,80}){0,20}\.
        (?:py|js|tsx?|md|txt|csv|json|ya?ml|toml|html?|css|sql|sh|log|pdf|docx?|xlsx?
        |pptx?|png|jpe?g|svg|zip|ini|cfg|env|ipynb|go|rs|java|c|h|cpp)(?![\w/])
      )
    | (?P<code>
        (?<![\w-])\#?(?=[A-Z_-]{0,30}\d)(?=[0-9_-]{0,30}[A-Z])[A-Z0-9]{1,40}
        (?:[-_][A-Z0-9]{1,40}){0,5}(?![\w-])
      | (?<![\w.,])\#?\d{7,40}(?!\w|,\d)
      )
    """,
    re.VERBOSE | re.ASCII,
)
CODE_MIN_CHARS = 5
QUOTE = re.compile(r"[\"“「『《]([^\"“”「」『』《》\n]{2,120})[\"”」』》]")

FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
# No two parts can match the same characters, so a long line takes linear time.
RULER = re.compile(r"^[ \t]*(?:\|[ \t]*)?:?-{3}[-:| \t]*$")
# Prices are not formulas: no space just inside the dollars, no digit behind them and,
# as in "US$5", no letter or digit before them.
DOLLARS = r"(?<![A-Za-z0-9])\$(?![\s$])[^$\n]*[^\s$\\]\$(?![\d$])"
# TeX formulas up to a plausible length, and single commands.
FORMULA = re.compile(
    rf"""
    \$\$[^$]{{1,2000}}\$\$
    | \\\[[^\[\]]{{1,2000}}\\\] | \\\([^()]{{1,500}}\\\)
    | (?=\$[^$\n]{{1,300}}\$)(?=\$[^$\n]*[\\^_=]){DOLLARS}
    | (?<![\w/\\.:])\\[A-Za-z]{{2,20}}(?![\w/\\.-])
    """,
    re.VERBOSE,
)

MONTHS = tuple(month.lower() for month in calendar.month_name[1:])
# Case is ignored in ASCII only, part by part: re.IGNORECASE alone also takes "ı", "İ",
# "ſ" and "K" for letters of these words, and no table below has those.
MONTH = r"(?P<{}>(?ai:(?:jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)[a-z]*))\.?"
# A letter that continues a word; Chinese may follow without a space.
LATIN = r"[A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff]"
DATE = re.compile(
    rf"""
    \b(?P<y1>\d{{4}})-(?P<m1>\d{{1,2}})-(?P<d1>\d{{1,2}})(?:[Tt][\d:.+-]+)?
    | (?P<y2>\d{{4}})\ ?年
      (?:\ ?(?P<m2>\d{{1,2}})\ ?月(?:\ ?(?P<d2>\d{{1,2}})\ ?[日号])?)?
    | (?P<m3>\d{{1,2}})\ ?月\ ?(?P<d3>\d{{1,2}})\ ?[日号]
    | \b(?P<d4>\d{{1,2}})(?ai:st|nd|rd|th)?\ (?ai:of\ )?{MONTH.format("w4")}(?!{LATIN})
      (?:,?\ (?P<y4>\d{{4}}))?
    | \b{MONTH.format("w5")}\ (?P<d5>\d{{1,2}})(?ai:st|nd|rd|th)?(?![\d:])
      (?:,?\ (?P<y5>\d{{4}}))?
    | \b{MONTH.format("w6")},?\ (?P<y6>\d{{4}})\b
    """,
    re.VERBOSE,
)
# "Last month" and the like reach about so far from the day of the message.
REACH = timedelta(days=62)

SCALES = {"k": 3, "thousand": 3, "m": 6, "million": 6, "bn": 9, "billion": 9}
SCALES |= {"十": 1, "百": 2, "千": 3, "万": 4, "亿": 8}
# Replaces text that was parsed already: not a letter, and not white space, which would
# look like the start of a sentence.
GAP = "\ufffc"
NUMBER = re.compile(
    rf"(?<![A-Za-z0-9_.\ufffc])(?P<digits>\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+(?:\.\d+)?)(?::00)?"
    rf"(?:\ ?(?P<scale>(?ai:thousand|million|billion|bn|[km](?!{LATIN}))"
    r"|[十百千万亿]))?"
    r"(?:(?ai:st|nd|rd|th)\b|\ ?(?P<half>(?ai:[ap]))\.?(?ai:m)\b)?"
)
# "Message 12" is the place of a statement, not its content.
REFERENCE = re.compile(r"\b(?ai:messages?) #?\d{1,7}\b|第 ?\d{1,7} ?条消息")
# Headings, which are not sentences: "## Next Steps", "**Open Questions**:".
HEADING = re.compile(r"^[ \t]*(?:#+ .*|\**[\w &/-]{1,40}\**:\**)[ \t]*$", re.MULTILINE)
LIST_NUMBER = re.compile(r"^[ \t]*\d{1,3}[.)、](?!\d) ?", re.MULTILINE)
NUMBERS = (
    *("zero", "one once first", "two twice second both couple pair", "three third"),
    *("four fourth", "five fifth", "six", "seven", "eight", "nine", "ten", "eleven"),
    *("twelve dozen", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
    *("eighteen", "nineteen", "twenty"),
)
NUMBER_WORDS = {
    word: str(n) for n, words in enumerate(NUMBERS) for word in words.split()
}
TENS = ("thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety", "hundred")
NUMBER_WORDS |= {word: str(n * 10) for n, word in enumerate(TENS, start=3)}
CHINESE_DIGITS = {char: str(n) for n, char in enumerate("零一二三四五六七八九十")}
CHINESE_DIGITS |= {"两": "2", "俩": "2", "半": "0.5"}

WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
# A capital letter after one of these says nothing about the word.
SENTENCE_START = re.compile(r"(?:^|[.!?:;。！？：；\n•*–—\-(\[\"“‘'「『]|\d[.)])\s*$")
NAME = re.compile(r"\b[A-Z][\w]*(?:['’-][A-Z]\w+)*")
CHINESE_NAME = re.compile(
    r"(?:名叫|叫做|叫|名字是|姓名[是：:]\s?)([\u4e00-\u9fff]{2,4}?)"
    r"(?=[，。,、；！\s]|$|的|是|在|和)"
)
STOP_NAMES = frozenset(
    (
        """
        i i'm i'd i'll i've ok okay user assistant tool ai llm mr mrs ms dr
        monday tuesday wednesday thursday friday saturday sunday
        mon tue wed thu fri sat sun am pm utc
        summary topics topic facts fact action items identifiers also none yes no
        the a an this that these those it they he she we you his her their its
        """
        + " ".join(MONTHS)
    ).split()
)
MAX_FACTS = 20
SENTENCE = re.compile(r"(?<=[.!?;])\s+|[。！？；\n]+")


@dataclass(frozen=True, slots=True)
class CheckableFact:
    """A detail of a text that is either right or wrong."""

    kind: Kind
    text: str


def _blank_markup(text: str) -> str:
    """Replace code blocks, formulas and rulers of tables by gaps.

    Their numbers and names are no facts of a conversation.
    """
    lines, fence = [], ""
    for line in text.splitlines(keepends=True):
        mark = FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif not fence:
            lines.append(RULER.sub(_blank_match, line))
            continue
        elif mark and mark[1].startswith(fence):
            fence = ""
        lines.append(GAP * (len(line) - 1) + "\n")
    return FORMULA.sub(_blank_match, "".join(lines))


def find_facts(text: str) -> list[CheckableFact]:
    """Return the facts of a text, each once, in the order of their kinds."""
    text = _blank_markup(text)
    # A part of a larger fact is not a fact of its own.
    found, text = _take_matches(IDENTIFIER, text)
    facts = [
        CheckableFact("identifier", identifier)
        for identifier in _name_identifiers(found)
    ]
    facts += [
        CheckableFact("quote", match[1].strip()) for match in QUOTE.finditer(text)
    ]
    found, text = _take_matches(DATE, text)
    facts += [CheckableFact("date", match[0]) for match in found]
    text = REFERENCE.sub(_blank_match, text)
    text = LIST_NUMBER.sub("", HEADING.sub("", text))
    facts += [
        CheckableFact("number", match[0].strip()) for match in NUMBER.finditer(text)
    ]
    for match in NAME.finditer(text):
        name = match[0].strip("_")
        starts = SENTENCE_START.search(text[max(0, match.start() - 6) : match.start()])
        if len(name) > 1 and not starts and name.lower() not in STOP_NAMES:
            facts.append(CheckableFact("name", name))
    facts += [CheckableFact("name", match[1]) for match in CHINESE_NAME.finditer(text)]
    return list(dict.fromkeys(facts))


def _blank_match(match: re.Match[str]) -> str:
    return GAP * len(match[0])


def _take_matches(
    pattern: re.Pattern[str], text: str
) -> tuple[list[re.Match[str]], str]:
    """Return the matches of the pattern, and the text with gaps in their place."""
    found: list[re.Match[str]] = []

    def take(match: re.Match[str]) -> str:
        found.append(match)
        return _blank_match(match)

    return found, pattern.sub(take, text)


def find_identifiers(text: str) -> list[str]:
    """Return e-mail addresses, links, paths, order numbers and the like, as written."""
    return _name_identifiers(IDENTIFIER.finditer(_blank_markup(text)))


def _name_identifiers(matches: Iterable[re.Match[str]]) -> list[str]:
    found: dict[str, None] = {}
    for match in matches:
        # Without the full stop of the sentence.
        identifier = match[0].rstrip(".,;:!?")
        if "(" not in identifier:
            identifier = identifier.rstrip(")")
        # Some short words only look like a code.
        is_code = match.lastgroup == "code"
        if not is_code or len(identifier.lstrip("#")) >= CODE_MIN_CHARS:
            found[identifier] = None
    return list(found)


def find_unsupported(
    summary: str, sources: Iterable[str], dates: Iterable[date] = ()
) -> list[str]:
    """Return the facts of the summary that are in none of its sources.

    `dates` are the days of the messages: "yesterday" becomes a date in a summary.
    """
    known = _KnownFacts(sources, dates)
    missing = (fact.text for fact in find_facts(summary) if not known.has(fact))
    return list(dict.fromkeys(missing))[:MAX_FACTS]


def find_said(
    wanted: Iterable[CheckableFact], sources: Iterable[str], dates: Iterable[date] = ()
) -> set[CheckableFact]:
    """Return the facts that are in one of the sources."""
    known = _KnownFacts(sources, dates)
    return {fact for fact in wanted if known.has(fact)}


def find_missing(
    texts: Iterable[str], summaries: Iterable[str]
) -> Iterator[list[CheckableFact]]:
    """Yield for each text those of its facts that are in none of the summaries."""
    known = _KnownFacts(summaries, (), is_summary=True)
    for text in texts:
        yield [fact for fact in find_facts(text) if not known.has(fact)][:MAX_FACTS]


def not_carried_over(
    texts: Iterable[str], summaries: Iterable[str]
) -> Iterator[list[str]]:
    """Yield the missing facts as texts alone, each once."""
    for missing in find_missing(texts, summaries):
        yield list(dict.fromkeys(fact.text for fact in missing))


def missing_identifiers(summary: str, sources: Iterable[str]) -> list[str]:
    """Return the identifiers of the sources that the summary lacks, in their order."""
    found = dict.fromkeys(each for text in sources for each in find_identifiers(text))
    return [each for each in found if each not in summary]


class _KnownFacts:
    """The contents of the sources, in the forms in which facts are looked up."""

    def __init__(
        self, sources: Iterable[str], dates: Iterable[date], *, is_summary: bool = False
    ) -> None:
        written = "\n".join(sources)
        # The days that a summary names; messages may complete each other's dates.
        self.named = {*_list_named_days(written)} if is_summary else None
        self.text = _normalize_text(written)
        self.words = {
            form
            for word in set(WORD.findall(self.text))
            for form in _list_name_forms(word)
        }
        # Case folding can put new letters before a number: "ß" becomes "ss".
        self.numbers = set(_read_numbers(written))
        self.days = sorted({date(day.year, day.month, day.day) for day in dates})

    def has(self, fact: CheckableFact) -> bool:
        text = _normalize_text(fact.text)
        if text in self.text:
            return fact.kind != "number" or self._has_number(text)
        if fact.kind == "date":
            return self._has_date(fact.text)
        if fact.kind == "number":
            return self._has_number(text)
        return fact.kind == "name" and not self.words.isdisjoint(_list_name_forms(text))

    def _has_number(self, text: str) -> bool:
        return not self.numbers.isdisjoint(_read_numbers(text))

    def _has_date(self, text: str) -> bool:
        year, month, day = _read_day(text)
        if any(_is_near(known, year, month, day) for known in self.days):
            return True
        if self.named is not None and month and day and (month, day) not in self.named:
            return False
        # A year is often left out: it is then the year of the message or next to it.
        years = [str(known.year + n) for known in self.days for n in (-1, 0, 1)]
        return (
            (not year or str(year) in self.numbers.union(years))
            and (
                not month
                or MONTHS[month - 1][:3] in self.text
                or str(month) in self.numbers
            )
            and (not day or str(day) in self.numbers)
        )


def _list_named_days(text: str) -> Iterator[tuple[int, int]]:
    """Yield the months and days that stand together in a sentence of a text."""
    for sentence in SENTENCE.split(text):
        dates, rest = _take_matches(DATE, sentence)
        days = [_read_day(match[0])[1:] for match in dates]
        yield from ((month, day) for month, day in days if month and day)
        # "5 and 6 June" is two days. Without a date, any two numbers may be one.
        rest = rest.casefold()
        numbers = {int(n) for n in _read_numbers(rest) if n.isdecimal() and len(n) < 3}
        months = {month for month, _ in days if month}
        months |= {n for n, name in enumerate(MONTHS, 1) if name[:3] in rest}
        months |= numbers if not months else set()
        yield from ((month, day) for month in months for day in numbers)


def _is_near(known: date, year: int | None, month: int | None, day: int | None) -> bool:
    """Return whether "yesterday" or "last month" can have meant that day."""
    if not month:
        return abs(known.year - (year or 0)) <= 1
    try:
        meant = date(year or known.year, month, day or min(known.day, 28))
    except ValueError:
        return False
    return abs(meant - known) <= REACH


def _read_day(text: str) -> tuple[int | None, int | None, int | None]:
    match = DATE.match(text)
    found = match.groupdict() if match else {}
    parts = {name[0]: value for name, value in found.items() if value}
    month = int(parts["m"]) if "m" in parts else None
    if "w" in parts:
        start = parts["w"][:3].lower()
        month = next(n for n, name in enumerate(MONTHS, 1) if name.startswith(start))
    year, day = parts.get("y"), parts.get("d")
    is_month = month is not None and 1 <= month <= 12
    return (
        int(year) if year else None,
        month if is_month else None,
        int(day) if day else None,
    )


def _read_numbers(text: str) -> Iterator[str]:
    """Yield each number in every form it may be repeated in: "3 pm" is also 15."""
    for match in NUMBER.finditer(text):
        digits = match["digits"].replace(",", "")
        yield _normalize_digits(digits)
        if scale := match["scale"]:
            yield _normalize_digits(_scale_number(digits, SCALES[scale.lower()]))
        if (match["half"] or "").lower() == "p" and digits.isdecimal():
            yield str(int(digits[:4]) + 12)
    for word in set(WORD.findall(text.casefold())):
        for part in word.split("-"):
            if part in NUMBER_WORDS:
                yield NUMBER_WORDS[part]
    for char in CHINESE_DIGITS.keys() & set(text):
        yield CHINESE_DIGITS[char]


def _normalize_digits(digits: str) -> str:
    whole, dot, rest = digits.partition(".")
    rest = rest.rstrip("0")
    return (whole.lstrip("0") or "0") + (dot + rest if rest else "")


def _scale_number(digits: str, zeros: int) -> str:
    whole, _, rest = digits.partition(".")
    return whole + rest[:zeros].ljust(zeros, "0") + "." + rest[zeros:]


def _list_name_forms(word: str) -> set[str]:
    """Return the forms of a name, with and without suffixes."""
    word = word.lower()
    base = re.sub(r"['’]s?$", "", word)
    parts = re.split(r"['’-]", base)
    return {word, base, base.rstrip("s"), base + "s", *(p for p in parts if len(p) > 2)}


def _normalize_text(text: str) -> str:
    """Return the text without differences of case, white space and quotation marks."""
    text = text.casefold().replace("’", "'").replace("‘", "'")
    return " ".join(text.split())
