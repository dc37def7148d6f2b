"""What the demo model says: answers drawn from the messages it was sent, only.

Each rule below looks at the newest message and returns an answer or None; the first
answer counts. Same messages, same answer.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage

from . import questions
from .extractive import is_personal, is_question, split_sentences
from .facts import find_name, last_name, last_value, to_second_person
from .phrases import CHINESE, ENGLISH
from .statements import CHINESE as CHINESE_TEXT
from .statements import Place, Statement, View, find_terms, read_view, search

MAX_QUOTE = 300
MAX_ITEMS = 8


@dataclass(frozen=True, slots=True)
class Talk:
    """The newest message, what is known beside it, and the language to answer in."""

    text: str
    view: View
    phrases: dict[str, str]

    @property
    def question(self) -> str:
        """The last question of the message, or all of it."""
        asked = [s for s in split_sentences(self.text) if is_question(s)]
        return asked[-1] if asked else self.text

    def say(self, phrase: str, /, **values: object) -> str:
        return self.phrases[phrase].format(**values)

    @property
    def facts(self) -> list[Statement]:
        """What the user stated, the newest message not counted."""
        return [s for s in self.view.statements if s.is_user and not s.is_question]

    def where(self, place: Place) -> str:
        if place.version:
            return self.say("summary", first=place.first, last=place.last)
        if place.first:
            return self.say("message", n=place.first)
        return self.say("earlier")

    def source(self, statement: Statement) -> str:
        place = statement.place
        if not place.first:
            return self.say("earlier_source")
        key = "summary_source" if place.version else "source"
        return self.say(key, where=self.where(place))

    def quote(self, statement: Statement, key: str = "") -> str:
        key = key or ("said" if statement.is_user else "answered")
        where = self.where(statement.place)
        return self.say(key, text=shorten(statement.shown), where=where)

    def describe_view(self) -> str:
        count = self.view.message_count
        key = "one_message" if count == 1 else "messages"
        parts = [
            self.say("summaries", first=p.first, last=p.last, version=p.version)
            for p in self.view.summaries
        ]
        return self.say("and").join([*parts, self.say(key, n=count)])

    def with_hint(self, text: str) -> str:
        """The first reply of a conversation says whom people are talking to."""
        is_first = self.view.message_count == 1 and not self.view.summaries
        return f"{text}{self.say('space')}{self.say('hint')}" if is_first else text

    def addressed(self) -> str:
        """ ", Lance" if the name is known."""
        known = find_name(self.text) or (last_name(self.facts) or [""])[0]
        return self.say("comma") + known if known else ""


def answer(messages: Sequence[BaseMessage]) -> str:
    """The reply of the demo model to these messages."""
    chat = [m for m in messages if m.type in ("human", "ai", "tool")]
    text = chat[-1].text.strip() if chat else ""
    view = read_view(chat[:-1])
    view = View(view.statements, view.summaries, view.message_count + bool(chat))
    phrases = CHINESE if is_chinese(text) else ENGLISH
    replies = [_apply_rules(Talk(part, view, phrases)) for part in split_parts(text)]
    known = [reply for rule, reply in replies if rule is not answer_unknown]
    return phrases["space"].join(dict.fromkeys(known)) or replies[0][1]


def _apply_rules(talk: Talk) -> tuple[Callable[[Talk], str | None], str]:
    """The first rule with an answer, and the answer."""
    return next((rule, reply) for rule in RULES if (reply := rule(talk)))


def split_parts(text: str) -> list[str]:
    """ "What's my name, and where am I going?" asks two things; most texts are one."""
    if len(text) > MAX_QUOTE or not is_question(text):
        return [text]
    return questions.AND_QUESTION.split(text)


def is_chinese(text: str) -> bool:
    """Whether Chinese characters carry the text, names and numbers in Latin aside."""
    characters = sum(map(len, CHINESE_TEXT.findall(text)))
    words = len(re.findall(r"[A-Za-z]+", text))
    return characters > words


def shorten(text: str) -> str:
    return text if len(text) <= MAX_QUOTE else text[: MAX_QUOTE - 1] + "…"


def answer_name(talk: Talk) -> str | None:
    if not (
        questions.NAME_QUESTION.search(talk.question) and is_question(talk.question)
    ):
        return None
    if found := last_name([*talk.facts, *said_now(talk)]):
        name, statement = found
        return talk.say("name", name=name, source=talk.source(statement)).strip()
    return talk.say("unknown", view=talk.describe_view())


def said_now(talk: Talk) -> list[Statement]:
    """Statements of the newest message itself: "I'm Lance. What's my name?"."""
    return [
        Statement(sentence, sentence, True, Place(), frozenset())
        for sentence in split_sentences(talk.text)
        if not is_question(sentence)
    ]


def answer_about_model(talk: Talk) -> str | None:
    if not questions.ABOUT_MODEL.search(talk.question):
        return None
    return talk.say("who", view=talk.describe_view())


def answer_about_view(talk: Talk) -> str | None:
    if not questions.ABOUT_VIEW.search(talk.question):
        return None
    return talk.say("view", view=talk.describe_view())


def answer_about_me(talk: Talk) -> str | None:
    if not questions.ABOUT_ME.search(talk.question):
        return None
    return list_statements(talk, [s for s in talk.facts if is_personal(s.text)])


def list_statements(talk: Talk, statements: list[Statement]) -> str | None:
    if len(statements) < 2:
        return talk.quote(statements[0]) if statements else None
    # Said twice, or recalled as well as summarised: once is enough.
    last = {s.shown: s for s in statements}.values()
    lines = [talk.quote(s, "item") for s in list(last)[-MAX_ITEMS:]]
    return "\n".join([talk.say("list"), *lines])


def answer_value(talk: Talk) -> str | None:
    """ "What is my favourite colour?" """
    match = questions.VALUE_QUESTION.search(talk.question)
    if not match:
        return None
    key = (match["key"] or match["zh"]).strip()
    if found := last_value(talk.facts, key):
        value, statement = found
        source = talk.source(statement)
        return talk.say("value", key=key, value=shorten(value), source=source)
    habit = questions.KEY_HABITS.get(key.lower())
    return list_statements(talk, find_habit(talk, habit)) if habit else None


def answer_position(talk: Talk) -> str | None:
    """ "What did I just say?" """
    said = [s for s in talk.view.statements if s.is_user]
    if not said or not is_question(talk.question):
        return None
    if questions.FIRST_THING.search(talk.question):
        return talk.quote(said[0])
    return talk.quote(said[-1]) if questions.LAST_THING.search(talk.question) else None


def answer_habit(talk: Talk, *, is_exact: bool = True) -> str | None:
    """ "What do I like?" """
    match = questions.HABIT_QUESTION.search(talk.question)
    if not match:
        return None
    if is_exact and list(find_terms(talk.question[match.end() :])):
        # It asks for something narrower, which the search may find.
        return None
    verb = (match["verb"] or match["zh"]).lower()
    habit = questions.SAME_HABIT.get(verb, verb)
    return list_statements(talk, find_habit(talk, habit))


def answer_any_habit(talk: Talk) -> str | None:
    return answer_habit(talk, is_exact=False)


def find_habit(talk: Talk, habit: str) -> list[Statement]:
    pattern = re.compile(
        rf"\b(?:i|i'm|i've|we|my)\b[^.!?]{{0,30}}?\b(?:{questions.HABITS[habit]})"
        rf"|我.{{0,6}}(?:{questions.HABITS[habit]})",
        re.IGNORECASE,
    )
    return [s for s in talk.facts if pattern.search(s.text)]


def answer_from_search(talk: Talk) -> str | None:
    """The earlier sentence that has most in common with the question."""
    if not is_question(talk.question):
        return None
    hits = search(talk.view.statements, talk.question)
    if hits and questions.NUMBER_QUESTION.search(talk.question):
        best = hits[0][0]
        with_digits = [h for h in hits if re.search(r"\d", h[1].text)]
        hits = [h for h in with_digits if h[0] > best / 2] or hits
    return talk.quote(hits[0][1]) if hits else None


def answer_number(talk: Talk) -> str | None:
    """A question for a number that names nothing else: the last one stated."""
    if not (
        is_question(talk.question) and questions.NUMBER_QUESTION.search(talk.question)
    ):
        return None
    numbers = [s for s in talk.facts if re.search(r"\d", s.text)]
    return talk.quote(numbers[-1]) if numbers else None


def answer_unknown(talk: Talk) -> str | None:
    if questions.REQUEST.search(talk.text):
        return talk.say("can_not", view=talk.describe_view())
    if is_question(talk.text):
        return talk.say("unknown", view=talk.describe_view())
    return None


def answer_courtesy(talk: Talk) -> str | None:
    if questions.THANKS.search(talk.text):
        return talk.say("thanks", name=talk.addressed())
    if questions.BYE.search(talk.text):
        return talk.say("bye", name=talk.addressed())
    return None


def acknowledge(talk: Talk) -> str | None:
    """Greets by name and repeats what was said, from the other side."""
    sentences = split_sentences(talk.text)
    name = next(filter(None, map(find_name, sentences)), None)
    facts = [s for s in sentences if is_personal(s) and not find_name(s)]
    parts = [talk.say("welcome", name=name)] if name else []
    if facts:
        told = [questions.REMEMBER.sub("", s).rstrip(" .!。！") for s in facts]
        told = [to_second_person(s) for s in told]
        parts.append(talk.say("noted", facts=shorten(talk.say("join").join(told))))
    return talk.with_hint(talk.say("space").join(parts)) if parts else None


def greet(talk: Talk) -> str | None:
    is_greeting = questions.GREETING.search(talk.text) and len(talk.text) < 40
    if not talk.text or is_greeting:
        return talk.say("hello", name=talk.addressed())
    return None


def repeat(talk: Talk) -> str:
    return talk.with_hint(talk.say("quoted", text=shorten(talk.text)))


RULES: Sequence[Callable[[Talk], str | None]] = (
    answer_name,
    answer_about_model,
    answer_about_view,
    answer_about_me,
    answer_position,
    answer_value,
    answer_habit,
    answer_from_search,
    answer_any_habit,
    answer_number,
    answer_unknown,
    answer_courtesy,
    acknowledge,
    greet,
    repeat,
)
