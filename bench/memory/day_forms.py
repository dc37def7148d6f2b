"""python -m bench.memory.day_forms: of 200 named days in each language, in forty
forms, how many are found, and in how many look-alikes a day is found that is none.

The forms were written before the patterns of days were changed for them, by the same
hand. No form is kept aside: only its days and the words around it are drawn by lot.
"""

import random
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta

from memory.engine.search.days import read_day_terms

SEED, EACH = 53, 5
MONTHS = [f"{date(2026, n, 1):%B}" for n in range(1, 13)]
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()  # noqa: SIM905
DAYS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
    "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth "
    "twentieth twenty-first twenty-second twenty-third twenty-fourth twenty-fifth "
    "twenty-sixth twenty-seventh twenty-eighth"
)
ORDINALS = DAYS.split()
NUMBERS = "one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
HAN = [*"一二三四五六七八九十", *(f"十{n}" for n in "一二三四五六七八九"), "二十"]
HAN += [f"二十{n}" for n in "一二三四五六七八"]
HAN_DAYS = "一二三四五六日"
FRAMES = {
    "en": (
        "We had dinner with the neighbours {}.",
        "{}: dentist, then the bank",
        "ugh i lost my keys {}",
        "Please note that the handover takes place {}.",
        "The parcel was sent {}, I think.",
    ),
    "zh": (
        "我们{}和邻居吃了饭。",
        "{}：看牙，然后去银行",
        "烦死了，{}把钥匙弄丢了",
        "请注意，交接时间为{}。",
        "包裹好像是{}寄的",
    ),
}
LOOK_ALIKES = {
    "en": (
        "The flat is on the 5th floor.",
        "You may be right about the second one.",
        "In the 21st century nobody writes letters.",
        "I finished on the 3rd attempt.",
        "He came first, she came third.",
        "The recipe needs 1/2 cup of milk.",
        "We march on.",
        "The sun was out.",
        "It works 24/7.",
        "A long time ago there was a king.",
    ),
    "zh": (
        "我住3号楼。",
        "地铁二号线很挤。",
        "五号选手赢了。",
        "他是一号人物。",
        "从前有座山。",
        "我们在十号门见。",
        "这件衣服是八号的码。",
        "周末愉快就好。",
        "他节日也上班。",
        "过了很久以后他回来了。",
    ),
}
# Feasts of the moon, by the years of the set.
MOON = {
    "春节": {2025: (1, 29), 2026: (2, 17), 2027: (2, 6)},
    "端午节": {2025: (5, 31), 2026: (6, 19), 2027: (6, 9)},
    "中秋节": {2025: (10, 6), 2026: (9, 25), 2027: (9, 15)},
}
EASTER = {2025: (4, 20), 2026: (4, 5), 2027: (3, 28)}
THANKSGIVING = {2025: (11, 27), 2026: (11, 26), 2027: (11, 25)}

Form = Callable[[random.Random, date], tuple[str, date]]


def nearest(today: date, days: list[date]) -> date:
    return min(days, key=lambda day: abs(day - today))


def feast(name: str, month: int, day: int) -> Form:
    return lambda chance, at: (
        name,
        nearest(at, [date(at.year + n, month, day) for n in (-1, 0, 1)]),
    )


def moving(name: str, days: dict[int, tuple[int, int]]) -> Form:
    return lambda chance, at: (
        name,
        nearest(at, [date(year, *day) for year, day in days.items()]),
    )


def fixed(name: str, step: int) -> Form:
    return lambda chance, at: (name, at + timedelta(step))


def week(weekday: int, at: date, weeks: int) -> date:
    return at - timedelta(at.weekday()) + timedelta(7 * weeks + weekday)


def month(at: date, months: int, day: int) -> date:
    years, place = divmod(at.month - 1 + months, 12)
    return date(at.year + years, place + 1, day)


def any_day(chance: random.Random, at: date) -> date:
    return at + timedelta(chance.randrange(-170, 170))


def near(day: int, at: date) -> date:
    return nearest(at, [month(at, n, day) for n in (-1, 0, 1)])


def calendar(write: Callable[[date], str]) -> Form:
    def form(chance: random.Random, at: date) -> tuple[str, date]:
        day = any_day(chance, at)
        while day.day > 28:
            day = any_day(chance, at)
        return write(day), day

    return form


def counted(write: Callable[[int], str], step: int, most: int) -> Form:
    def form(chance: random.Random, at: date) -> tuple[str, date]:
        n = chance.randrange(2, most)
        return write(n), at + timedelta(step * n)

    return form


def of_week(write: Callable[[int], str], weeks: int) -> Form:
    def form(chance: random.Random, at: date) -> tuple[str, date]:
        n = chance.randrange(7)
        return write(n), week(n, at, weeks)

    return form


def last_weekday(chance: random.Random, at: date) -> tuple[str, date]:
    n = chance.randrange(7)
    away = (at.weekday() - n - 1) % 7 + 1
    return f"last {WEEKDAYS[n]}", at - timedelta(away)


def of_month(write: Callable[[int], str], months: int | None) -> Form:
    def form(chance: random.Random, at: date) -> tuple[str, date]:
        n = chance.randrange(1, 28)
        return write(n), near(n, at) if months is None else month(at, months, n)

    return form


def suffix(n: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(n % 10 * (n not in (11, 12, 13)), "th")
    return f"{n}{ending}"


ENGLISH: tuple[Form, ...] = (
    calendar(lambda d: f"on {d:%Y-%m-%d}"),
    calendar(lambda d: f"on {d.day} {MONTHS[d.month - 1]}"),
    calendar(lambda d: f"on {MONTHS[d.month - 1]} {d.day}, {d.year}"),
    calendar(lambda d: f"on {MONTHS[d.month - 1][:3]} {suffix(d.day)}"),
    calendar(lambda d: f"on the {suffix(d.day)} of {MONTHS[d.month - 1]}"),
    calendar(lambda d: f"on the {ORDINALS[d.day - 1]} of {MONTHS[d.month - 1]}"),
    calendar(lambda d: f"on {MONTHS[d.month - 1]} the {ORDINALS[d.day - 1]}"),
    calendar(lambda d: f"on {d.day}.{d.month}.{d.year}"),
    calendar(lambda d: f"on {d.month}/{d.day}/{d.year}"),
    calendar(lambda d: f"on {d.day}/{d.month}/{d.year}"),
    of_month(lambda n: f"on the {suffix(n)}", None),
    of_month(lambda n: f"by the {suffix(n)}", None),
    of_month(lambda n: f"on the {suffix(n)} of last month", -1),
    of_month(lambda n: f"on the {suffix(n)} of next month", 1),
    fixed("yesterday", -1),
    fixed("the day before yesterday", -2),
    fixed("last night", -1),
    fixed("this morning", 0),
    fixed("tomorrow evening", 1),
    fixed("the day after tomorrow", 2),
    counted(lambda n: f"{NUMBERS[n - 1]} days ago", -1, 12),
    counted(lambda n: f"{n} days ago", -1, 40),
    counted(lambda n: f"{NUMBERS[n - 1]} weeks ago", -7, 6),
    counted(lambda n: f"in {NUMBERS[n - 1]} days", 1, 12),
    fixed("a fortnight ago", -14),
    fixed("a couple of days ago", -2),
    fixed("a week ago", -7),
    fixed("in a week", 7),
    lambda chance, at: ("a month ago", month(at, -1, at.day)),
    lambda chance, at: ("a year ago", month(at, -12, at.day)),
    last_weekday,
    lambda chance, at: ("last weekend", week(5, at, -1)),
    lambda chance, at: ("this weekend", week(5, at, 0)),
    feast("on Halloween", 10, 31),
    feast("on Christmas Eve", 12, 24),
    feast("on New Year's Eve", 12, 31),
    feast("on Valentine's Day", 2, 14),
    feast("on Boxing Day", 12, 26),
    moving("on Thanksgiving", THANKSGIVING),
    moving("on Easter Sunday", EASTER),
)
CHINESE: tuple[Form, ...] = (
    calendar(lambda d: f"{d:%Y-%m-%d}"),
    calendar(lambda d: f"{d.year}年{d.month}月{d.day}日"),
    calendar(lambda d: f"{d.month}月{d.day}号"),
    calendar(lambda d: f"{HAN[d.month - 1]}月{HAN[d.day - 1]}号"),
    calendar(lambda d: f"{HAN[d.month - 1]}月{HAN[d.day - 1]}日"),
    of_month(lambda n: f"{n}号", None),
    of_month(lambda n: f"{HAN[n - 1]}号", None),
    of_month(lambda n: f"上个月{n}号", -1),
    of_month(lambda n: f"下个月{HAN[n - 1]}号", 1),
    of_month(lambda n: f"本月{n}日", 0),
    fixed("昨天", -1),
    fixed("前天", -2),
    fixed("大前天", -3),
    fixed("昨晚", -1),
    fixed("今早", 0),
    fixed("前晚", -2),
    fixed("明天", 1),
    fixed("后天", 2),
    fixed("大后天", 3),
    counted(lambda n: f"{HAN[n - 1]}天前", -1, 20),
    counted(lambda n: f"{n}天之前", -1, 30),
    counted(lambda n: f"{'两' if n == 2 else HAN[n - 1]}周前", -7, 6),
    counted(lambda n: f"{'两' if n == 2 else HAN[n - 1]}个星期以前", -7, 6),
    counted(lambda n: f"{HAN[n - 1]}天后", 1, 20),
    fixed("半个月前", -15),
    lambda chance, at: ("一个月前", month(at, -1, at.day)),
    lambda chance, at: ("去年今天", month(at, -12, at.day)),
    of_week(lambda n: f"上周{HAN_DAYS[n]}", -1),
    of_week(lambda n: f"上上个星期{HAN_DAYS[n]}", -2),
    of_week(lambda n: f"下个礼拜{HAN_DAYS[n]}", 1),
    lambda chance, at: ("上周末", week(5, at, -1)),
    lambda chance, at: ("这个周末", week(5, at, 0)),
    feast("国庆节", 10, 1),
    feast("元旦", 1, 1),
    feast("圣诞节", 12, 25),
    feast("五一劳动节", 5, 1),
    feast("情人节", 2, 14),
    moving("春节", MOON["春节"]),
    moving("端午节", MOON["端午节"]),
    moving("中秋节", MOON["中秋节"]),
)
FORMS = {"en": ENGLISH, "zh": CHINESE}


def make_days(language: str) -> Iterator[tuple[str, date, date]]:
    """Yield each text, the day on which it was written, and the day that it names."""
    chance = random.Random(SEED)
    for form in FORMS[language]:
        for n in range(EACH):
            at = date(2026, chance.randrange(1, 13), chance.randrange(1, 29))
            words, day = form(chance, at)
            yield FRAMES[language][n].format(words), at, day


def find_days(text: str, at: date) -> list[str]:
    """The days that a text of this day names, without its own."""
    terms = read_day_terms(text, datetime(at.year, at.month, at.day, 12, tzinfo=UTC))
    return [term for term in terms if len(term) > len("05-13")]


def is_found(text: str, at: date, day: date) -> bool:
    """Return whether the day is found, with at most one other beside that of the
    message.
    """
    found = find_days(text, at)
    return f"{day}" in found and len(found) <= 3


def count_alarms(language: str) -> int:
    at = date(2026, 5, 13)
    return sum(len(find_days(text, at)) > 1 for text in LOOK_ALIKES[language])


def main() -> None:
    for language in FORMS:
        cases = [*make_days(language)]
        found = sum(is_found(*case) for case in cases)
        print(
            f"{language}  found {found / len(cases):4.0%} of {len(cases)}, wrongly "
            f"{count_alarms(language)} of {len(LOOK_ALIKES[language])}"
        )


if __name__ == "__main__":
    main()
