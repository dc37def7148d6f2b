"""Days that a text names, in English and Chinese.

"2 May", "May 2nd, 2023", "2023-05-02", "02.05.2023", "last Tuesday", "yesterday",
5月2日, 五月二号, 上周二, 昨天.

A day becomes a term, with its year and without, so that a search compares all ways of
writing it, in the date of a message and in its text.
"""

import re
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from itertools import islice
from operator import itemgetter

# Limits for one text.
MOST_CHARS, MOST_DAYS = 20_000, 20

MONTHS = (
    *("jan", "feb", "mar", "apr", "may", "jun"),
    *("jul", "aug", "sep", "oct", "nov", "dec"),
)
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MONTH = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
)
WEEKDAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?\b"
NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5}
NUMBERS |= {"six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
HAN = dict(zip("一二三四五六七八九", range(1, 10), strict=True)) | {"两": 2}
HAN_NUMBER = r"(?:\d{1,2}|[一二三四五六七八九十两]{1,3})"
HAN_WEEKDAYS = "一二三四五六日天"
RELATIVE = {"the day before yesterday": -2, "the day after tomorrow": 2}
RELATIVE |= {"yesterday": -1, "last night": -1, "today": 0, "tonight": 0, "tomorrow": 1}
HAN_RELATIVE = {"大前天": -3, "前天": -2, "昨天": -1, "昨晚": -1, "昨日": -1}
HAN_RELATIVE |= {"今天": 0, "今日": 0, "今晚": 0, "明天": 1, "后天": 2}
HAN_WEEKS = {"上上": -2, "上": -1, "这": 0, "本": 0, "下": 1}
TWO, FOUR = r"\d{1,2}", r"\d{4}"
# First characters of the forms, inside a word and at its start: checked first, because
# no form begins at most places of a text.
INSIDE = rf"\d{''.join(HAN)}十{''.join(map(itemgetter(0), HAN_RELATIVE))}上这本下"
AT_A_WORD = "adefjlmnosty"
# The names of groups end in the number of their form: a pattern has each name once.
DAY = re.compile(
    rf"""
    (?: (?=[{INSIDE}]) | \b (?=[{AT_A_WORD}]) ) (?:
    (?<!\d) (?P<year0>{FOUR}) [-/.] (?P<month0>{TWO}) [-/.] (?P<day0>{TWO}) (?!\d)
  | (?<![\d.]) (?P<day3>{TWO}) (?P<mark>[./-]) (?P<month3>{TWO}) (?P=mark)
    (?P<year3>{FOUR}) (?!\d)
  | \b (?:
        (?P<day1>{TWO}) (?:st|nd|rd|th)? \s (?:of\s)? (?P<month1>{MONTH}) \b
      | (?P<month2>{MONTH}) \.? \s (?:the\s)? (?P<day2>{TWO}) (?:st|nd|rd|th)? \b
    ) (?: ,? \s (?P<year1>{FOUR}) \b )?
  | (?: (?P<year4>{FOUR}) 年 )?
    (?P<month4>{HAN_NUMBER}) 月 (?P<day4>{HAN_NUMBER}) [日号]
  | \b (?P<relative>{"|".join(RELATIVE).replace(" ", "[ ]")}) \b
  | (?P<han_relative>{"|".join(HAN_RELATIVE)})
  | \b (?P<ago>\d{{1,3}}|{"|".join(NUMBERS)}) \s (?P<unit>day|week)s? \s ago \b
  | (?P<han_ago>{HAN_NUMBER}) (?P<han_unit>天|个?(?:星期|礼拜)|周) (?:之?前|以前)
  | \b (?P<which>last|this|next) \s (?P<weekday>{WEEKDAY})
  | (?P<han_which>上上|上|这|本|下) 个? (?:周|星期|礼拜)
    (?P<han_weekday>[{HAN_WEEKDAYS}])
    )
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
    for (start, end), _ in reversed(found):
        text = f"{text[:start]} {text[end:]}"
    return text, [
        f"{day:%m-%d}" if day.year == NO_YEAR else f"{day}" for _, day in found
    ]


def _choose_year(day: date, at: datetime | None) -> date:
    """Return the day in the nearest year, if it has none."""
    if day.year != NO_YEAR or not at:
        return day
    years = range(at.year - 1, at.year + 2)
    days = [*filter(None, (_make_day(year, day.month, day.day) for year in years))]
    return min(days, key=lambda each: abs(each - at.date()), default=day)


def _make_day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _read_days(text: str, at: datetime | None) -> Iterator[tuple[Place, date]]:
    """Yield the span of each named day, and the day."""
    for match in DAY.finditer(text):
        found = {name: value for name, value in match.groupdict().items() if value}
        day = _read_calendar(found) or (
            _read_relative(found, at.date()) if at else None
        )
        if day:
            yield match.span(), day


def _read_calendar(found: dict[str, str]) -> date | None:
    parts = {name[:-1]: value for name, value in found.items() if name[-1].isdigit()}
    if "day" not in parts:
        return None
    month, day, year = parts["month"], parts["day"], parts.get("year", NO_YEAR)
    if month[:3].casefold() in MONTHS:
        return _make_day(int(year), MONTHS.index(month[:3].casefold()) + 1, int(day))
    # In 02/05/2023 the day comes first, if that is a date.
    return _make_day(int(year), _parse_number(month), _parse_number(day)) or (
        _make_day(int(year), _parse_number(day), _parse_number(month))
        if "mark" in found
        else None
    )


def _read_relative(found: dict[str, str], today: date) -> date | None:
    readers: tuple[tuple[str, Callable[[], int]], ...] = (
        ("relative", lambda: RELATIVE[found["relative"].casefold()]),
        ("han_relative", lambda: HAN_RELATIVE[found["han_relative"]]),
        ("ago", lambda: _count_back(found["ago"], found["unit"])),
        ("han_ago", lambda: _count_back(found["han_ago"], found["han_unit"])),
        ("weekday", lambda: _count_days_to(found["which"], found["weekday"], today)),
        ("han_weekday", lambda: _han_step(found, today)),
    )
    for name, read in readers:
        if name in found:
            return today + timedelta(days=read())
    return None


def _count_back(number: str, unit: str) -> int:
    return -_parse_number(number) * (1 if unit.casefold() in ("day", "天") else 7)


def _count_days_to(which: str, weekday: str, today: date) -> int:
    """Return the days to the last such weekday, the next one, or that of this week."""
    away = WEEKDAYS.index(weekday[:3].casefold()) - today.weekday()
    if which.casefold() == "last":
        return away - 7 * (away >= 0)
    return away + 7 * (away <= 0 and which.casefold() == "next")


def _han_step(found: dict[str, str], today: date) -> int:
    """Return the days to that weekday of this or another week.

    Weeks begin on Monday.
    """
    weekday = min(HAN_WEEKDAYS.index(found["han_weekday"]), 6)
    return weekday - today.weekday() + 7 * HAN_WEEKS[found["han_which"]]


def _parse_number(number: str) -> int:
    """Return the number in digits, an English word or Chinese characters (up to 99)."""
    if number.isdecimal():
        return int(number)
    if number.casefold() in NUMBERS:
        return NUMBERS[number.casefold()]
    tens, ten, ones = number.rpartition("十")
    return 10 * (HAN.get(tens, 1) if ten else 0) + HAN.get(ones, 0)
