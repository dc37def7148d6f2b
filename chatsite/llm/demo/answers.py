"""What the demo model says: answers drawn from the messages it was sent, only.

Each rule looks at the newest message and returns an answer or ""; the first answer
counts. Same messages, same answer.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from langchain_core.messages import BaseMessage

from .extractive import is_personal, is_question, split_sentences
from .facts import find_name, find_value, to_second_person
from .phrases import CHINESE, ENGLISH
from .statements import Place, Sent, Statement, read_message, read_sent, search

MAX_QUOTE = 300
MAX_ITEMS = 8
MAX_GREETING = 40


def _pattern(*parts: str) -> re.Pattern[str]:
    return re.compile("|".join(parts), re.IGNORECASE)


# Between two questions, in one sentence or in two.
AND_QUESTION = _pattern(
    r"(?:,|(?<!\s))\s++and\s+(?=(?:what|who|where|when|which|how)\b)",
    r"(?<=[?？])\s*(?=[^?？]{1,100}[?？]\W*$)",
)
NAME_QUESTION = _pattern(
    r"\bmy name\b|\bwho am i\b|\b(?:remember|know) me\b",
    r"我叫(?:什么|啥)|我的名字|我是谁|叫我什么|认识我|记得我",
)
ABOUT_MODEL = _pattern(
    r"\b(?:who|what|how) are you\b|\bwhat can you do\b",
    r"你是谁|你是什么|你能做什么|你会什么|你好吗|你怎么样",
)
ABOUT_CONTEXT = _pattern(
    r"\bhow many messages\b|\bwhat (?:do|can) you see\b|\bwhat were you sent\b",
    r"你(?:能)?(?:看到|收到)了?(?:什么|多少|哪些)|多少条消息",
)
ABOUT_ME = _pattern(
    r"\babout me\b|\bsummar(?:y|ise|ize)\b",
    r"what (?:did|have) i (?:tell|told|say|said)(?: you)?\W*$",
    r"关于我|总结|我(?:都)?(?:说|告诉)(?:过|了)?(?:你)?(?:些)?什么",
)
FIRST_THING = _pattern(
    r"\bfirst (?:thing|message|question|sentence)\b", "第一(?:条|句|个)"
)
LAST_THING = _pattern(
    r"\b(?:last|previous) (?:thing|message|question|sentence)\b",
    r"\bjust (?:say|said|tell|told|ask|asked)\b",
    "刚才|刚刚|上一(?:条|句|个)",
)
VALUE_QUESTION = _pattern(
    r"\b(?:what|which|who|when|where|how)(?:'s|’s| is| are| was| were|s)? my "
    r"(?P<key>[^?.!,]{1,60})",
    r"我的?(?P<zh>[\u4e00-\u9fff\w]{1,12}?)(?:是|叫)(?:什么|谁|哪|多少|几)",
)
# "What do I like?" may have several answers.
LIST_QUESTION = _pattern(
    r"\b(?:what|which|where|who)\b[^?.!]{0,40}? (?:do|did|would) i (?:really |also )?"
    r"(?a:like|love|hate|prefer|enjoy|want|need|live|work|have)\W{0,9}$",
    r"我(?:喜欢|爱|讨厌|想要|住|想|有)(?:在)?(?:什么|啥|哪|谁|多少|几)里?\W{0,9}$",
)
NUMBER_QUESTION = _pattern(
    r"\b(?:when|number|code|date|how (?:many|much|old|long)|what time)\b",
    r"几|多少|什么时候|号码|密码|日期|多大",
)
REQUEST = _pattern(
    r"^\W*(?:please |could you |can you )?(?:write|explain|give|list|show|describe"
    r"|translate|make|create|help|suggest|recommend|calculate|draw"
    r"|tell me (?:a|an|about))\b",
    r"^\W*请?(?:帮我|写|解释|翻译|列出|推荐|计算)",
)
REMEMBER = _pattern(
    r"^\W*(?:please )?remember(?: that|:)? ", r"^\W*请?记(?:住|得|一下)[，：:, ]*"
)
GREETING = _pattern(
    r"^\W*(?:hi|hello|hey|good (?:morning|evening|afternoon))\b",
    r"^\W*(?:你好|您好|嗨|早上好)",
)
THANKS = _pattern(r"^\W*(?:thanks|thank you|谢谢|多谢)")
BYE = _pattern(r"^\W*(?:bye|goodbye|see you|再见|拜拜)")


@dataclass(frozen=True, slots=True)
class Asked:
    """A message, or a part that asks one thing, with what was sent before it."""

    text: str
    stated: list[Statement]
    sent: Sent
    phrases: dict[str, str]

    @property
    def question(self) -> str:
        """The last question of the message, or all of it."""
        asked = [s for s in split_sentences(self.text) if is_question(s)]
        return asked[-1] if asked else self.text

    @property
    def facts(self) -> list[Statement]:
        """What the user stated in earlier messages."""
        return [s for s in self.sent.statements if s.is_user and not s.is_question]

    def find_name(self) -> tuple[str, Place]:
        """The name that the user stated last, and where; "" if there is none."""
        for statement in reversed([*self.facts, *self.stated]):
            if name := find_name(statement.text):
                return name, statement.place
        return "", Place()

    def say(self, phrase: str, /, **values: object) -> str:
        return self.phrases[phrase].format(**values)

    def address(self, phrase: str) -> str:
        """A phrase with ", Lance" if the name is known."""
        name, _ = self.find_name()
        return self.say(phrase, name=self.say("comma") + name if name else "")

    def where(self, place: Place) -> str:
        if place.version:
            return self.say("summary", first=place.first, last=place.last)
        if place.first:
            return self.say("message", n=place.first)
        return self.say("earlier")

    def source(self, place: Place) -> str:
        phrase = "summary_source" if place.version else "source"
        return self.say(phrase, where=self.where(place))

    def quote(self, statement: Statement, phrase: str = "") -> str:
        phrase = phrase or ("said" if statement.is_user else "answered")
        where = self.where(statement.place)
        return self.say(phrase, text=shorten(statement.shown), where=where)

    def quote_all(self, statements: list[Statement]) -> str:
        if len(statements) < 2:
            return self.quote(statements[0]) if statements else ""
        # Said twice, or recalled as well as summarised: once is enough.
        last = {s.shown: s for s in statements}.values()
        lines = [self.quote(s, "item") for s in list(last)[-MAX_ITEMS:]]
        return "\n".join([self.say("list"), *lines])

    def describe_sent(self) -> str:
        count = self.sent.message_count + 1
        parts = [
            self.say("version", first=p.first, last=p.last, version=p.version)
            for p in self.sent.summaries
        ]
        messages = self.say("one_message" if count == 1 else "messages", n=count)
        return self.say("and").join([*parts, messages])

    def with_hint(self, text: str) -> str:
        """The first reply of a conversation says that a demo model writes it."""
        is_first = not self.sent.message_count and not self.sent.summaries
        return f"{text}{self.say('space')}{self.say('hint')}" if is_first else text


def answer(messages: Sequence[BaseMessage]) -> str:
    """The reply of the demo model to these messages."""
    return find_answer(messages)[0]


def find_answer(messages: Sequence[BaseMessage]) -> tuple[str, bool]:
    """The reply, and whether it was found in what was sent."""
    chat = [m for m in messages if m.type in ("human", "ai", "tool")]
    text = chat[-1].text.strip() if chat else ""
    whole = read_asked(chat)
    # "What's my name, and where am I going?" asks two things; most texts are one.
    is_short = len(text) <= MAX_QUOTE and is_question(text)
    parts = AND_QUESTION.split(text) if is_short else [text]
    replies = []
    for part in parts:
        asked = replace(whole, text=part)
        rule, reply = next((rule, said) for rule in RULES if (said := rule(asked)))
        replies.append((rule, reply))
    known = [reply for rule, reply in replies if rule is not answer_unknown]
    said = whole.phrases["space"].join(dict.fromkeys(known))
    return said or replies[0][1], bool(said)


def read_asked(chat: Sequence[BaseMessage]) -> Asked:
    """The newest of these messages, and what the others say."""
    text = chat[-1].text.strip() if chat else ""
    stated = [s for s in read_message(chat[-1]) if not s.is_question] if chat else []
    phrases = CHINESE if is_chinese(text) else ENGLISH
    return Asked(text, stated, read_sent(chat[:-1]), phrases)


def is_chinese(text: str) -> bool:
    """Whether Chinese characters carry the text, names and numbers in Latin aside."""
    characters = sum("\u3400" <= char <= "\u9fff" for char in text)
    return characters > len(re.findall(r"[A-Za-z]+", text))


def shorten(text: str) -> str:
    return text if len(text) <= MAX_QUOTE else text[: MAX_QUOTE - 1] + "…"


def answer_name(asked: Asked) -> str:
    if not (NAME_QUESTION.search(asked.question) and is_question(asked.question)):
        return ""
    name, place = asked.find_name()
    if not name:
        return asked.say("unknown", sent=asked.describe_sent())
    return asked.say("name", name=name, source=asked.source(place))


def answer_about_model(asked: Asked) -> str:
    for phrase, pattern in (("who", ABOUT_MODEL), ("sent", ABOUT_CONTEXT)):
        if pattern.search(asked.question):
            return asked.say(phrase, sent=asked.describe_sent())
    return ""


def answer_about_me(asked: Asked) -> str:
    if not ABOUT_ME.search(asked.question):
        return ""
    return asked.quote_all([s for s in asked.facts if is_personal(s.text)])


def answer_position(asked: Asked) -> str:
    """ "What did I just say?" """
    said = [s for s in asked.sent.statements if s.is_user]
    if not said or not is_question(asked.question):
        return ""
    if FIRST_THING.search(asked.question):
        return asked.quote(said[0])
    return asked.quote(said[-1]) if LAST_THING.search(asked.question) else ""


def answer_value(asked: Asked) -> str:
    """ "What is my favourite colour?" """
    match = VALUE_QUESTION.search(asked.question)
    if not match:
        return ""
    key = (match["key"] or match["zh"]).strip()
    try:
        value, statement = find_value(asked.facts, key)
    except LookupError:
        return ""
    source = asked.source(statement.place)
    return asked.say("value", key=key, value=shorten(value), source=source)


def answer_from_search(asked: Asked) -> str:
    """The earlier sentence that has most in common with the question."""
    if not is_question(asked.question):
        return ""
    hits = search(asked.sent.statements, asked.question)
    if LIST_QUESTION.search(asked.question):
        found = {statement for _, statement in hits}
        return asked.quote_all([s for s in asked.facts if s in found])
    if NUMBER_QUESTION.search(asked.question):
        numbers = [hit for hit in hits if re.search(r"\d", hit[1].text)]
        hits = [hit for hit in numbers if hit[0] > hits[0][0] / 2] or hits
        # It may name nothing else: the last one stated.
        stated = [s for s in reversed(asked.facts) if re.search(r"\d", s.text)]
        hits = hits or [(0, statement) for statement in stated]
    return asked.quote(hits[0][1]) if hits else ""


def answer_unknown(asked: Asked) -> str:
    if REQUEST.search(asked.text):
        return asked.say("unable", sent=asked.describe_sent())
    if is_question(asked.text):
        return asked.say("unknown", sent=asked.describe_sent())
    return ""


def answer_courtesy(asked: Asked) -> str:
    if THANKS.search(asked.text):
        return asked.address("thanks")
    return asked.address("bye") if BYE.search(asked.text) else ""


def acknowledge(asked: Asked) -> str:
    """Greets by name and repeats what was said, from the other side."""
    sentences = split_sentences(asked.text)
    name = next(filter(None, map(find_name, sentences)), "")
    parts = [asked.say("welcome", name=name)] if name else []
    facts = [
        to_second_person(REMEMBER.sub("", sentence).rstrip(" .!。！"))
        for sentence in sentences
        if is_personal(sentence) and not find_name(sentence)
    ]
    if facts:
        noted = shorten(asked.say("join").join(facts))
        parts.append(asked.say("noted", facts=noted))
    return asked.with_hint(asked.say("space").join(parts)) if parts else ""


def greet(asked: Asked) -> str:
    is_greeting = GREETING.search(asked.text) and len(asked.text) < MAX_GREETING
    return asked.address("hello") if is_greeting or not asked.text else ""


def repeat(asked: Asked) -> str:
    return asked.with_hint(asked.say("quoted", text=shorten(asked.text)))


RULES: Sequence[Callable[[Asked], str]] = (
    answer_name,
    answer_about_model,
    answer_about_me,
    answer_position,
    answer_value,
    answer_from_search,
    answer_unknown,
    answer_courtesy,
    acknowledge,
    greet,
    repeat,
)
