"""Days that a text names, for a search by date: English and Chinese notations.

"yesterday" and "last Tuesday" count from the day of the message; a question counts from
the day on which it is asked. Dates are in UTC.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from itertools import islice

from .values import HAN, MONTH, MONTHS, TENS, WORDS, read_number

# Limits for one text.
MOST_CHARS, MOST_DAYS = 20_000, 20

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
WEEKDAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?\b"
PLACES = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
    "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth"
)
ORDINALS = {word: n for n, word in enumerate(PLACES.split(), start=1)}
ORDINALS |= {"twentieth": 20, "thirtieth": 30}
NUMBER = rf"(?:\d{{1,3}}|an?|a[ ]couple[ ]of|{'|'.join(WORDS)})"
COUNTS = {"a": 1, "an": 1, "a couple of": 2}
HAN_NUMBER = rf"(?:\d{{1,2}}|[{HAN[1:]}十]{{1,3}})"
HAN_WEEKDAYS = "一二三四五六日天"
RELATIVE = {"the day before yesterday": -2, "the day after tomorrow": 2}
RELATIVE |= {"yesterday": -1, "last night": -1, "today": 0, "tonight": 0, "tomorrow": 1}
HAN_RELATIVE = {
    "大前天": -3,
    "前天": -2,
    "前晚": -2,
    "昨天": -1,
    "昨晚": -1,
    "昨日": -1,
}
HAN_RELATIVE |= {
    "今天": 0,
    "今日": 0,
    "今晚": 0,
    "今早": 0,
    "明天": 1,
    "大后天": 3,
    "后天": 2,
}
HAN_WEEKS = {"上上": -2, "上": -1, "这": 0, "本": 0, "下": 1}
STEPS = HAN_WEEKS | {"last": -1, "this": 0, "next": 1}
YEARS = {"前年": -2, "去年": -1, "今年": 0, "明年": 1}
DAYS = {"day": 1, "天": 1, "fortnight": 14}
DAYS |= dict.fromkeys(["week", "周", "星期", "礼拜"], 7)
# Month and day of feasts; of those that move, from FIRST_YEAR on.
FIRST_YEAR = 2020
FEAST_DAYS = (
    "halloween 1031, christmas eve 1224, christmas 1225, boxing day 1226, "
    "new year's eve 1231, new year's day 101, valentine's day 214, 元旦 101, "
    "情人节 214, 妇女节 308, 清明节 405, 劳动节 501, 儿童节 601, 国庆 1001, "
    "平安夜 1224, 圣诞节 1225, "
    "春节 125 212 201 122 210 129 217 206 126 213 203 123 211 131 219, "
    "端午 625 614 603 622 610 531 619 609 528 616 605 624 612 601 620, "
    "中秋 1001 921 910 929 917 1006 925 915 1003 922 912 1001 919 908 927, "
    "easter 412 404 417 409 331 420 405 328 416 401 421 413 328 417 409, "
    "thanksgiving 1126 1125 1124 1123 1128 1127 1126 1125 1123 1122 1128 1127 1125 "
    "1124 1123"
)
FEASTS = {
    (name := each.rstrip("0123456789 ")): [
        divmod(int(place), 100) for place in each.removeprefix(name).split()
    ]
    for each in FEAST_DAYS.split(", ")
}
TWO, FOUR = r"\d{1,2}", r"\d{4}"
NTH = rf"(?:{TWO}(?:st|nd|rd|th)?|(?:(?:twenty|thirty)-)?(?:{'|'.join(ORDINALS)}))\b"
# First characters of the forms, inside a word and at its start: checked first, because
# no form begins at most places of a text, nor inside a number.
INSIDE = f"{HAN}十半上这本下{''.join(w[0] for w in [*HAN_RELATIVE, *YEARS, *FEASTS])}"
AT_A_WORD = "abcdefhijlmnostuvy"
# The names of groups end in the number of their form: a pattern has each name once.
DAY = re.compile(
    rf"""
    (?: (?=[{INSIDE}]) | (?<!\d)(?=\d) | \b (?=[{AT_A_WORD}]) ) (?:
    (?<!\d) (?P<year0>{FOUR}) [-/.] (?P<month0>{TWO}) [-/.] (?P<day0>{TWO}) (?!\d)
  | (?<![\d.]) (?P<day3>{TWO}) (?P<mark>[./-]) (?P<month3>{TWO}) (?P=mark)
    (?P<year3>{FOUR}) (?!\d)
  | \b (?: (?P<day1>{TWO}) (?:st|nd|rd|th)? \s (?:of\s)? (?P<month1>{MONTH})
      | (?:the\s)? (?P<day7>{NTH}) \s of \s (?P<month7>{MONTH})
      | (?P<month2>{MONTH}) \s (?P<day2>{TWO}(?:st|nd|rd|th)?\b | the\s{NTH})
    ) (?: ,? \s (?P<year1>{FOUR}) \b )?
  | (?: (?P<year4>{FOUR}年 | {"|".join(YEARS)}) )?
    (?P<month4>{HAN_NUMBER}) 月 (?P<day4>{HAN_NUMBER}) [日号]
  | \b (?:on|by|until|till|since|before|after|from) \s the \s
    (?P<day5>{TWO}(?:st|nd|rd|th)) \b (?: \s of \s (?P<which5>last|this|next) \s month
      | (?! \s (?:of|floor|century|attempt|try|time|row|page|street|grade|level|lap|
        place|line|month|week|year|edition|step|day|anniversary|birthday)\b ) )
  | (?P<which8>上上|上|这|本|下) 个?月 (?P<day8>{HAN_NUMBER}) [日号]
  | (?<![\d.一二三四五六七八九十第]) (?P<day6>{HAN_NUMBER}) 号
    (?![楼线门店码院房床馆位桌机车选人库球公文])
  | \b (?P<relative>{"|".join(RELATIVE).replace(" ", "[ ]")}) \b
  | (?P<relative0>{"|".join(HAN_RELATIVE)})
  | \b (?P<ahead>in\s)? (?P<count>{NUMBER}) \s (?P<unit>day|week|fortnight|month|year)
    s? (?(ahead)|\s ago) \b
  | (?P<count2>{HAN_NUMBER}|半) 个? (?P<unit2>天|星期|礼拜|周|月|年)
    (?: 之?前 | 以前 | (?P<ahead2>之?后|以后) )
  | (?P<year9>{"|".join(YEARS)}) 今天
  | \b (?P<which>last|this|next) \s (?P<weekday>{WEEKDAY}|weekend\b)
  | (?P<which0>上上|上|这|本|下) 个? (?:周|星期|礼拜) (?P<weekday0>[{HAN_WEEKDAYS}末])
  | (?:\b|(?<=[^a-z])) (?P<feast>{"|".join(FEASTS).replace(" ", "[ ]")}) )
    """,
    re.IGNORECASE | re.VERBOSE,
)
# A leap year of which there are no conversations.
NO_YEAR = 4

Place = tuple[int, int]


def read_day_terms(text: str, at: datetime | None) -> list[str]:
    """Return the terms of a message's own day and of the days that it names."""
    known = [at.date()] if at else []
    named = (each for _, each in islice(_read_days(text[:MOST_CHARS], at), MOST_DAYS))
    known += (_choose_year(each, at) for each in named)
    return [term for day in dict.fromkeys(known) for term in (f"{day}", f"{day:%m-%d}")]


def read_asked_days(text: str, at: datetime | None) -> tuple[str, list[str]]:
    """Return a question without the days it names, and their terms."""
    found = [*islice(_read_days(text[:MOST_CHARS], at), MOST_DAYS)]
    for start, end in reversed(dict.fromkeys(place for place, _ in found)):
        text = f"{text[:start]} {text[end:]}"
    return text, [
        f"{day:%m-%d}" if day.year == NO_YEAR else f"{day}" for _, day in found
    ]


def _choose_year(day: date, at: datetime | None) -> date:
    """Return the day in the nearest year, if it has none."""
    if day.year != NO_YEAR or not at:
        return day
    years = range(at.year - 1, at.year + 2)
    days = (_make_day(year, day.month, day.day) for year in years)
    return _find_nearest(days, at.date()) or day


def _find_nearest(days: Iterable[date | None], today: date) -> date | None:
    return min(filter(None, days), key=lambda day: abs(day - today), default=None)


def _make_day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _add_months(today: date, months: int, day: int) -> date | None:
    years, place = divmod(today.month - 1 + months, 12)
    return _make_day(today.year + years, place + 1, day)


def _read_days(text: str, at: datetime | None) -> Iterator[tuple[Place, date]]:
    """Yield the span of each named day, and the day: of a weekend, both of its days."""
    for match in DAY.finditer(text):
        found = {
            name.rstrip("0123456789"): value.casefold()
            for name, value in match.groupdict().items()
            if value
        }
        days: Iterable[date | None] = ()
        if "month" in found:
            days = _read_calendar(found, at)
        elif "feast" in found:
            days = [_read_feast(FEASTS[found["feast"]], at)]
        elif at:
            days = _read_relative(found, at.date())
        yield from ((match.span(), day) for day in days if day)


def _read_feast(places: Sequence[tuple[int, int]], at: datetime | None) -> date | None:
    """Return the day of a feast; of one that moves, the nearest."""
    if len(places) == 1:
        return _make_day(NO_YEAR, *places[0])
    days = (_make_day(year, *place) for year, place in enumerate(places, FIRST_YEAR))
    return _find_nearest(days, at.date()) if at else None


def _read_calendar(found: dict[str, str], at: datetime | None) -> list[date | None]:
    """Return the day; of 5/2/2026, both days that it can be."""
    year = found.get("year", f"{NO_YEAR}").rstrip("年")
    if year in YEARS:
        year = f"{at.year + YEARS[year] if at else NO_YEAR}"
    day, month = _parse_number(found["day"]), found["month"][:3]
    month = MONTHS.index(month) + 1 if month in MONTHS else _parse_number(month)
    # In 02.05.2023 the day comes first, if that is a date.
    days = [_make_day(int(year), month, day)]
    if "mark" in found and (found["mark"] == "/" or not days[0]):
        days.append(_make_day(int(year), day, month))
    return [*dict.fromkeys(days)]


def _read_relative(found: dict[str, str], today: date) -> list[date | None]:
    step = STEPS.get(found.get("which", ""))
    if "day" in found:
        day = _parse_number(found["day"])
        steps = (-1, 0, 1) if step is None else (step,)
        return [_find_nearest((_add_months(today, n, day) for n in steps), today)]
    if "weekday" in found:
        monday = today + timedelta(7 * (step or 0) - today.weekday())
        weekday = found["weekday"]
        if weekday in ("weekend", "末"):
            return [monday + timedelta(5), monday + timedelta(6)]
        if weekday in HAN_WEEKDAYS:
            return [monday + timedelta(min(HAN_WEEKDAYS.index(weekday), 6))]
        return [today + timedelta(_count_days_to(found["which"], weekday, today))]
    if "year" in found:
        return [_add_months(today, 12 * YEARS[found["year"]], today.day)]
    if "unit" in found:
        return [_count(found, today)]
    return [today + timedelta((RELATIVE | HAN_RELATIVE)[found["relative"]])]


def _count(found: dict[str, str], today: date) -> date | None:
    """Return the day so many days, weeks, months or years before or after today."""
    unit, sign = found["unit"], 1 if "ahead" in found else -1
    if found["count"] == "半":
        return today + timedelta(sign * 15) if unit == "月" else None
    count = sign * _parse_number(found["count"])
    if unit in DAYS:
        return today + timedelta(count * DAYS[unit])
    return _add_months(today, count * (12 if unit in "year年" else 1), today.day)


def _count_days_to(which: str, weekday: str, today: date) -> int:
    """Return the days to the last such weekday, the next one, or that of this week."""
    away = WEEKDAYS.index(weekday[:3]) - today.weekday()
    if which == "last":
        return away - 7 * (away >= 0)
    return away + 7 * (away <= 0 and which == "next")


def _parse_number(number: str) -> int:
    """Return the number in digits, or in words of both languages."""
    tens, _, ones = number.removeprefix("the ").rpartition("-")
    if ones in ORDINALS:
        return TENS.get(tens, 0) + ORDINALS[ones]
    return COUNTS.get(number) or int(read_number(re.sub(r"(?<=\d)[a-z]+", "", ones)))
