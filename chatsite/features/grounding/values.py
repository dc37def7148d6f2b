"""Numbers with units and dates of a text, in one form for both languages."""

import re
from collections.abc import Iterator, Set
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, NamedTuple

from memory.engine.search.values import (
    CHINESE,
    ENGLISH,
    HAN,
    MONTH,
    MONTHS,
    read_number,
)

NAMES = Path(__file__).with_name("units.txt").read_text("utf-8").splitlines()
UNITS = {name: line.split()[0] for line in NAMES for name in line.split()}
SCALES = {"k": 3, "thousand": 3, "million": 6, "billion": 9, "bn": 9}
SCALES |= {"百": 2, "千": 3, "万": 4, "亿": 8}
ENDS = "|".join(map(re.escape, sorted(UNITS, key=len, reverse=True)))
AFTER = re.compile(
    rf"\s?(?:(?P<scale>{'|'.join(SCALES)})(?![a-z]))?"
    rf"[\s-]?(?:(?P<unit>{ENDS})(?![a-z]))?"
)
BEFORE = re.compile(r"(?:([$€£¥]|usd|eur|gbp|cny|rmb|jpy)\s?|(百分)之)\Z")
SEPARATORS = re.compile(r"[,'’ \u00a0\u2009\u202f]")
DIGITS = re.compile(
    rf"\d{{1,3}}(?:{SEPARATORS.pattern}\d{{3}})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)*"
)
NUMBERS = (DIGITS, re.compile(CHINESE), re.compile(rf"\b{ENGLISH}"))
# Each begins with a set of characters, so that a search skips all others at once.
FIGURE = rf"[\d{HAN}十][\d{HAN}十]{{0,3}}"
DATES = (
    re.compile(
        rf"(?P<n>{FIGURE})(?:(?P<sep>[-/.])(?P<m>\d{{1,2}})(?P=sep)(?P<d>\d{{1,2}})(?!\d)"
        rf"|(?:\s?年\s?(?P<m2>{FIGURE}))?\s?月\s?(?P<d2>{FIGURE})\s?[日号]"
        rf"|(?:st|nd|rd|th)?\s(?:of\s)?(?P<name>{MONTH})(?:,?\s(?P<y>\d{{4}})\b)?)"
    ),
    re.compile(
        rf"(?P<name>{MONTH})\s(?:the\s)?(?P<n>\d{{1,2}})(?:st|nd|rd|th)?\b"
        r"(?:,?\s(?P<y>\d{4})\b)?"
    ),
)
# Wide forms, each to one character, so that all keep their places.
WIDE = {n: chr(n - 0xFEE0) for n in (*range(0xFF10, 0xFF5B), 0xFF04, 0xFF05)}
WIDE |= str.maketrans("￥\u2010\u2011‘İ", "¥--'i")


class FoundValue(NamedTuple):
    """A value at a place of a text; `key`: its normal form."""

    start: int
    end: int
    kind: str  # number or date
    key: Any
    unit: str = ""

    @property
    def is_long(self) -> bool:
        """True if a number says enough without a unit."""
        has_digits = len(significant(self.key)) > 2
        return has_digits or self.key >= 1000 or self.key % 1 != 0

    @property
    def tells(self) -> bool:
        """True if it is worth a look."""
        return self.kind == "date" or bool(self.unit) or self.is_long

    @property
    def group(self) -> Any:
        """The part of the key that equal values have in common."""
        return self.key[1:] if self.kind == "date" else self.key


def fold(text: str) -> str:
    """Return the text as the functions below expect it, of the same length."""
    return text.translate(WIDE).lower()


def read_dates(text: str, _wanted: Set[str] | None = None) -> Iterator[FoundValue]:
    """Yield dates; the year is 0 where it is not given."""
    for found in (found for each in DATES for found in each.finditer(text)):
        part = {"m": "", "m2": "", "d": "", "d2": "", **found.groupdict("")}
        months = part["m"] or part["m2"]
        if part["name"]:
            month = str(MONTHS.index(part["name"][:3]) + 1)
            said = (part["y"], month, part["n"])
        elif months:
            said = (part["n"], months, part["d"] or part["d2"])
        else:
            said = ("", part["n"], part["d2"])
        year, month, day = (int(read_number(each or "0")) for each in said)
        is_begin = found.string[found.start() - 1 : found.start()] not in [
            *"0123456789.-"
        ]
        if is_begin and month in range(1, 13) and day in range(1, 32):
            end = found.start() + len(found[0].rstrip("."))
            yield FoundValue(found.start(), end, "date", (year, month, day))


def read_numbers(text: str, wanted: Set[str] | None = None) -> Iterator[FoundValue]:
    """Yield numbers; only those with `wanted` significant digits, if it is given."""
    for pattern in NUMBERS:
        for found in pattern.finditer(text):
            is_plain = pattern is DIGITS
            if is_plain and wanted is not None and significant(found[0]) not in wanted:
                continue
            value = _read_number(found, is_plain=is_plain)
            if value and (wanted is None or significant(value.key) in wanted):
                yield value


def _read_number(found: re.Match[str], *, is_plain: bool) -> FoundValue | None:
    text, (start, end) = found.string, found.span()
    said = SEPARATORS.sub("", found[0]) if is_plain else read_number(found[0])
    try:
        value = Decimal(said)
    except InvalidOperation:
        return None
    after = AFTER.match(text, end)
    before = BEFORE.search(text, max(0, start - 4), start)
    if after["scale"]:
        value, end = value.scaleb(SCALES[after["scale"]]), after.end("scale")
    unit = (before and (before[1] or before[2])) or after["unit"] or ""
    if before:
        start = before.start()
    elif unit:
        end = after.end("unit")
    return FoundValue(start, end, "number", value, UNITS.get(unit, unit))


def significant(number: object) -> str:
    """Return the digits of a number without zeros around them."""
    digits = f"{number:f}" if isinstance(number, Decimal) else str(number)
    return "".join(filter(str.isdigit, digits)).strip("0")


def is_same(value: FoundValue, other: FoundValue) -> bool:
    """Return whether two values of one kind are the same, as far as both are given."""
    if value.group != other.group:
        return False
    if value.kind == "date":
        years = {value.key[0], other.key[0]}
        return len(years) == 1 or 0 in years
    units = {value.unit, other.unit}
    is_one = len(units) == 1 or ("¥" in units and units <= {"¥", "cny", "jpy"})
    return is_one or ("" in units and value.is_long)
