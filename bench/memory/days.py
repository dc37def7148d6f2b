"""Made-up diaries, in English and Chinese, and questions that name a day.

The ways to name one of the half UNSEEN were written together with those of SEEN, before
the search read days; what reads them was changed by SEEN alone.
"""

import random
from collections.abc import Callable
from datetime import datetime, timedelta

from memory.evaluation.replay import (
    RecordedConversation,
    RecordedMessage,
    RecordedQuestion,
)

from .conversations import STARTED

# The last day is a Sunday.
DAYS, QUESTIONS = 119, 50
# What the user says each day, and the question about it.
TOLD = {
    "en": [
        ("I cooked {} for dinner.", "What did I cook {}?"),
        ("I read a book about {}.", "Which book did I read {}?"),
        ("I went to the market and bought {}.", "What did I buy at the market {}?"),
        ("I had a long call about {}.", "What was my call about {}?"),
        ("I cleaned the room with the {}.", "Which room did I clean {}?"),
        ("I dreamt of {}.", "What did I dream of {}?"),
        ("I wrote a letter about {}.", "What was the letter about that I wrote {}?"),
        ("I watched a film about {}.", "Which film did I watch {}?"),
    ],
    "zh": [
        ("晚饭我做了{}。", "{}晚饭我做了什么？"),
        ("我读了一本讲{}的书。", "{}我读了哪本书？"),
        ("我去市场买了{}。", "{}我在市场买了什么？"),
        ("我打了个电话，说的是{}。", "{}我打电话说了什么？"),
        ("我打扫了放{}的房间。", "{}我打扫了哪个房间？"),
        ("我梦见了{}。", "{}我梦见了什么？"),
        ("我写了一封信，讲{}。", "{}我写的信讲什么？"),
        ("我看了一部关于{}的电影。", "{}我看了什么电影？"),
    ],
}
THINGS = {
    "en": ("lentils", "rivers", "trains", "bread", "beans", "clocks", "horses", "maps"),
    "zh": ("豆子", "河流", "火车", "面包", "苹果", "钟表", "马", "地图"),
}
ANSWERS = {"en": "That sounds like a good day.", "zh": "听起来不错。"}
# Said a while before or after, of a day that has a name there.
PLANS = {
    "en": ("The dentist wants to see me {}.", "Who wants to see me {}?"),
    "zh": ("牙医约我{}去看牙。", "{}谁约我去看牙？"),
}
HAN = "〇一二三四五六七八九十"
WEEK = "一二三四五六日"

Write = Callable[[datetime], str]


def say_number(number: int) -> str:
    """Up to 31, in Chinese."""
    tens, ones = divmod(number, 10)
    return (HAN[tens] if tens > 1 else "") + "十" * (tens > 0) + HAN[ones] * (ones > 0)


def say_ordinal(day: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(day % 10 if day not in (11, 12, 13) else 0)
    return f"{day}{ending or 'th'}"


CALENDAR: dict[str, list[Write]] = {
    "en seen": [
        lambda day: f"on {day.day} {day:%B}",
        lambda day: f"on {day:%B} {say_ordinal(day.day)}",
        lambda day: f"on {day:%Y-%m-%d}",
    ],
    "en unseen": [
        lambda day: f"on the {say_ordinal(day.day)} of {day:%B}",
        lambda day: f"on {day:%b} {day.day}, {day.year}",
        lambda day: f"on {day:%d.%m.%Y}",
        lambda day: f"on {day.day} {day:%b} {day.year}",
    ],
    "zh seen": [
        lambda day: f"{day.month}月{day.day}日",
        lambda day: f"{day.year}年{day.month}月{day.day}日",
        lambda day: f"{day:%Y-%m-%d}",
    ],
    "zh unseen": [
        lambda day: f"{say_number(day.month)}月{say_number(day.day)}号",
        lambda day: f"{day.month}月{day.day}号",
        lambda day: f"{day:%Y/%m/%d}",
        lambda day: f"{day:%d.%m.%Y}",
    ],
}
# By how many days ago.
RELATIVE = {
    "en seen": {1: "yesterday", 3: "three days ago", 5: "last Tuesday"},
    "en unseen": {2: "the day before yesterday", 4: "4 days ago", 0: "today"}
    | {7: "a week ago", 1: "last Saturday"},
    "zh seen": {1: "昨天", 12: "上周二", 3: "3天前"},
    "zh unseen": {2: "前天", 4: "四天前", 0: "今天", 7: "上星期天", 11: "上个礼拜三"},
}


def make_days(half: str) -> list[RecordedConversation]:
    return [_make(language, half) for language in TOLD]


def _make(language: str, half: str) -> RecordedConversation:
    chance = random.Random(f"{language} {half}")
    name = f"{language} {half}"
    messages: list[RecordedMessage] = []
    told: dict[tuple[int, int], str] = {}

    def say(role: str, text: str, at: datetime) -> str:
        id_ = f"{len(messages)}"
        messages.append(RecordedMessage(id=id_, role=role, content=text, created_at=at))
        return id_

    planned: list[RecordedQuestion] = []
    statement, question = PLANS[language]
    for number in range(DAYS):
        at = STARTED + timedelta(days=number)
        for kind, (text, _) in enumerate(TOLD[language]):
            text = text.format(chance.choice(THINGS[language]))
            told[number, kind] = say("user", text, at + timedelta(minutes=kind))
            say("assistant", ANSWERS[language], at + timedelta(minutes=kind))
        if number % 4 == 0:
            day = at + timedelta(days=chance.randrange(2, 40))
            forms = CALENDAR[name]
            id_ = say("user", statement.format(chance.choice(forms)(day)), at)
            say("assistant", ANSWERS[language], at)
            asked = question.format(chance.choice(forms)(day))
            planned.append(RecordedQuestion(question=asked, evidence_ids=[id_]))
    questions = chance.sample(planned, 15)
    while len(questions) < QUESTIONS:
        kind = chance.randrange(len(TOLD[language]))
        if len(questions) % 3:
            number = chance.randrange(DAYS)
            named = chance.choice(CALENDAR[name])(STARTED + timedelta(days=number))
        else:
            ago = chance.choice([*RELATIVE[name]])
            number, named = DAYS - 1 - ago, RELATIVE[name][ago]
        asked = TOLD[language][kind][1].format(named)
        questions.append(
            RecordedQuestion(question=asked, evidence_ids=[told[number, kind]])
        )
    return RecordedConversation(
        id=f"days-{language}-{half}", messages=messages, qa=questions
    )
