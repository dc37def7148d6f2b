"""The numbers of Excel's cells as their formats show them.

Dates, durations, percentages and leading zeros are formatted; all other numbers have
the digits that Excel stores. It knows no Django: it runs in the program of
document_text.py.
"""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

from .parts import Parts, parse_xml

# They raise ValueError and OverflowError for what they can't show.
Show = Callable[[str, datetime], str]

# Formats that every workbook has, by number.
DATE_FORMATS = {*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)}
USUAL = {9: "0%", 10: "0.00%", 46: "[h]:mm:ss"}
# Texts, colours and conditions in a format.
NO_DIGITS = re.compile(r'"[^"]*"?|\[[^\]]*\]?|\\.|_.|\*.')
ELAPSED = re.compile(r"\[(h+|m+|s+)\]", re.IGNORECASE)
MAX_DIGITS = 15


def show_general(value: str, origin: datetime) -> str:
    """Excel has 15 digits of a number; a file can have the next two of its fraction."""
    if not re.fullmatch(r"-?\d{1,30}\.\d{1,40}(E[+-]?\d{1,3})?", value):
        return value
    return f"{float(value):.{MAX_DIGITS}g}".replace("e", "E")


def show_date(value: str, origin: datetime) -> str:
    days = float(value)
    at = origin + timedelta(days=days)
    at = (at + timedelta(milliseconds=500)).replace(microsecond=0)
    if 0 <= days < 1:
        return f"{at:%H:%M:%S}"
    return f"{at:%Y-%m-%d}" if days == int(days) else f"{at:%Y-%m-%d %H:%M:%S}"


def show_duration(unit: str, code: str, value: str, origin: datetime) -> str:
    """Hours, or minutes or seconds, that go on beyond a day."""
    whole = round(abs(float(value)) * 86_400)
    sign = "-" * value.startswith("-")
    minutes, seconds = divmod(whole, 60)
    if unit == "s":
        return f"{sign}{whole}"
    if unit == "m":
        return f"{sign}{minutes}:{seconds:02}" if "s" in code else f"{sign}{minutes}"
    hours, minutes = divmod(minutes, 60)
    shown = f"{sign}{hours}:{minutes:02}" if "m" in code else f"{sign}{hours}"
    return f"{shown}:{seconds:02}" if "s" in code else shown


def show_share(places: int, value: str, origin: datetime) -> str:
    return f"{float(value) * 100:.{places}f}%"


def show_padded(code: str, value: str, origin: datetime) -> str:
    """Digits put into a form of zeros and marks, as 000-0000."""
    digits = value.lstrip("-")
    if not digits.isdecimal() or not digits.isascii():
        return show_general(value, origin)
    places = code.count("0")
    digits = digits.zfill(places)
    shown, left = [], list(digits[len(digits) - places :])
    for char in code:
        shown.append(left.pop(0) if char == "0" else char)
    return "-" * value.startswith("-") + digits[: len(digits) - places] + "".join(shown)


def find_format(number: int, code: str) -> Show:
    """Return the way in which the format of this number and code shows a value."""
    first = code.partition(";")[0]
    if unit := ELAPSED.search(first):
        rest = first[unit.end() :].lower()
        return partial(show_duration, unit[1][0].lower(), rest)
    plain = NO_DIGITS.sub("", code).lower().replace("general", "")
    if number in DATE_FORMATS or re.search(r"[dmyhs]", plain):
        return show_date
    bare = NO_DIGITS.sub("", first)
    if "%" in bare:
        fraction = bare.partition(".")[2]
        return partial(show_share, min(fraction.count("0"), MAX_DIGITS))
    # Marks between the digits are kept, which are texts or escaped.
    form = re.sub(r'"([^"0]*)"|\\([^0])', r"\1\2", first)
    if re.fullmatch(r"[^0-9#?,.@]{0,9}0[0 ()/+-]{1,30}", form) and form.count("0") > 1:
        return partial(show_padded, form)
    return show_general


def read_formats(parts: Parts, path: str) -> list[Show]:
    """Return the formats of numbers, by the number of their style."""
    codes, styles, inside = dict(USUAL), [], [""]

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag == "numFmt":
            codes[int(attributes["numFmtId"])] = attributes["formatCode"]
        elif tag == "cellXfs":
            inside.append(tag)
        elif tag == "xf" and inside[-1] == "cellXfs":
            number = int(attributes.get("numFmtId", "0"))
            styles.append(find_format(number, codes.get(number, "")))

    def end(tag: str) -> None:
        if tag == inside[-1]:
            inside.pop()

    parse_xml(parts.read(path), start, end)
    return styles
