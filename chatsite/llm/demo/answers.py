"""Replies of the demo model, drawn only from the messages it was sent.

A question is answered with the earlier sentence that fits it best, anything else is
noted. Same messages, same answer.
"""

import json
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage

from memory.engine.blank import drop_fences
from memory.engine.summaries.schemas import is_chinese
from memory.engine.tokens import count_text, count_tokens

from .extractive import is_question, split_sentences
from .statements import (
    DemoContext,
    DemoStatement,
    SourcePosition,
    find_fenced,
    find_similar,
    read_fenced,
    read_message,
    read_sent,
    split_files,
)

# The sentences in English and Chinese.
PHRASES = tomllib.loads(Path(__file__).with_name("phrases.toml").read_text("utf-8"))
MAX_QUOTE = 300
MAX_LINE = 80

# Between two questions, in one sentence or in two.
AND_QUESTION = re.compile(
    r"(?:,|(?<!\s))\s++and\s+(?=(?:what|who|where|when|which|how)\b)"
    r"|(?<=[?？])\s*(?=[^?？]{1,100}[?？]\W*$)",
    re.IGNORECASE,
)
NAME_QUESTION = re.compile(r"\bmy name\b|\bwho am i\b|我叫什么|我的名字|我是谁", re.I)
CONTEXT_QUESTION = re.compile(
    r"\bwhat (?:do|can) you see\b|\bwhat were you sent\b"
    r"|你能?(?:看到|收到)了?(?:什么|哪些)",
    re.IGNORECASE,
)
REQUEST = re.compile(
    r"\W*(?:please |could you |can you )?"
    r"(?:write|explain|translate|draw|create|list|plan)\b"
    r"|\W*请?(?:帮我|写|解释|翻译|列出)",
    re.IGNORECASE,
)
NAME = r"(?P<name>[A-Z][\w'’-]*(?: [A-Z][\w'’-]+){0,2}|[\u4e00-\u9fff·]{2,8})"
STATED_NAMES = (
    re.compile(rf"(?i:\bmy name(?: is|'s|’s)(?: now)?|\bcall me) {NAME}"),
    re.compile(rf"(?:^|\W)(?i:i'm|i’m|i am) {NAME}(?=\W*(?:$|[,.!;(]|and\b|from\b))"),
    re.compile(
        r"(?:我(?:的名字)?(?:叫做?|的名字是)|请?叫我) ?"
        r"(?P<name>[A-Za-z][\w' -]*\w|[\u4e00-\u9fff·]{1,4}?)"
        r"(?=$|\W|今年|来自|住|在|是)"
    ),
)
# "I'm German" and "I'm Sorry" are no introductions.
NO_NAME = re.compile(
    r"(?i:.*(?:ese|ish)|sorry|fine|good|here|back|sure|happy|tired|done|ready|german"
    r"|american|french|italian|russian|indian|european|什么.*)"
)


@dataclass(frozen=True, slots=True)
class Question:
    """A message, or a part that asks one thing, with what was sent before it."""

    text: str
    stated: list[DemoStatement]
    sent: DemoContext
    phrases: dict[str, str]

    def find_name(self) -> tuple[str, SourcePosition]:
        """Return the name that the user stated last, and its place.

        The name is "" if there is none.
        """
        said = [s for s in self.sent.statements if s.is_user and not s.is_question]
        for statement in reversed([*said, *self.stated]):
            if name := find_name(statement.text):
                return name, statement.place
        return "", SourcePosition()

    def format_phrase(self, phrase: str, /, **values: object) -> str:
        return self.phrases[phrase].format(**values)

    def describe_place(self, place: SourcePosition) -> str:
        if place.version:
            return self.format_phrase("summary", first=place.first, last=place.last)
        phrase = "message" if place.first else "earlier"
        return self.format_phrase(phrase, n=place.first)

    def quote_statement(self, statement: DemoStatement) -> str:
        phrase = "said" if statement.is_user else "answered"
        values = {
            "text": clip_quote(statement.text),
            "where": self.describe_place(statement.place),
        }
        if statement.file:
            return self.format_phrase("file_said", name=statement.file, **values)
        return self.format_phrase(phrase, **values)

    def describe_sent(self) -> str:
        count = self.sent.message_count + 1
        parts = [
            self.format_phrase("version", first=p.first, last=p.last, version=p.version)
            for p in self.sent.summaries
        ]
        phrase = "one_message" if count == 1 else "messages"
        messages = self.format_phrase(phrase, n=count)
        return self.format_phrase("and").join([*parts, messages])


def answer_messages(
    messages: Sequence[BaseMessage], tools: Sequence[dict[str, Any]] = ()
) -> str:
    """Return the reply of the demo model to these messages, sent with these tools."""
    return describe_images(messages) + find_answer(messages, tools)[0]


def list_image_urls(message: BaseMessage) -> list[str]:
    """Return the images in a message, as they were sent."""
    parts = message.content if isinstance(message.content, list) else ()
    found = (part.get("image_url") for part in parts if isinstance(part, dict))
    return [each["url"] for each in found if isinstance(each, dict)]


def describe_images(messages: Sequence[BaseMessage]) -> str:
    """Describe the images that came with the newest message; "": it has none."""
    urls = list_image_urls(messages[-1]) if messages else []
    if not urls:
        return ""
    asked = read_asked(messages[-1:])
    kinds = [
        f"{url[5:].partition(';')[0]}, {len(url) * 3 // 4096 + 1} KB" for url in urls
    ]
    phrase = "image" if len(urls) == 1 else "images"
    said = asked.format_phrase(phrase, n=len(urls), kinds="; ".join(kinds))
    return said + asked.phrases["space"]


def find_answer(
    messages: Sequence[BaseMessage], tools: Sequence[dict[str, Any]] = ()
) -> tuple[str, bool]:
    """Return the reply, and True if it was found in the messages that were sent."""
    whole = read_asked([m for m in messages if m.type in ("human", "ai", "tool")])
    typed, files = split_files(whole.text)
    if files:
        return answer_files(replace(whole, text=typed), files), True
    if REQUEST.match(whole.text):
        return whole.format_phrase("unable", sent=whole.describe_sent()), False
    if CONTEXT_QUESTION.search(whole.text):
        return describe_sheets(messages, tools, whole), True
    if not is_question(whole.text):
        return echo_message(whole), True
    # "What's my name, and where am I going?" asks two things; most texts are one.
    is_short = len(whole.text) <= MAX_QUOTE
    parts = AND_QUESTION.split(whole.text) if is_short else [whole.text]
    said = [look_up_fact(replace(whole, text=part)) for part in parts]
    found = whole.phrases["space"].join(filter(None, dict.fromkeys(said)))
    unknown = whole.format_phrase("unknown", sent=whole.describe_sent())
    return found or unknown, bool(found)


def describe_sheets(
    messages: Sequence[BaseMessage], tools: Sequence[dict[str, Any]], asked: Question
) -> str:
    """List the parts of the request, each with its tokens and a quotation."""
    sheets: dict[str, list[BaseMessage]] = {}
    for message in messages:
        fenced = find_fenced(message)
        name = fenced[0] if fenced else "system" if message.type == "system" else "sent"
        sheets.setdefault(name, []).append(message)
    lines = [asked.format_phrase("sheets")]
    if tools:
        tokens = count_text(json.dumps(tools, ensure_ascii=False))
        text = tools[0]["function"]["description"][:MAX_LINE]
        words = asked.format_phrase("sheet_tools", n=len(tools))
        lines.append(asked.format_phrase("sheet", name=words, tokens=tokens, text=text))
    for name, parts in sheets.items():
        fenced = find_fenced(parts[0])
        said = fenced and next((each.text for each in read_fenced(fenced[1])), "")
        text = said or next(iter(split_sentences(parts[0].text)), "")
        words = asked.format_phrase(f"sheet_{name}", n=len(parts))
        values = {"tokens": count_tokens(parts), "text": text[:MAX_LINE]}
        lines.append(asked.format_phrase("sheet", name=words, **values))
    return "\n".join(lines)


def answer_files(asked: Question, files: Sequence[tuple[str, str]]) -> str:
    """Return the names of the files, and the passage that fits the question best.

    Without such a passage it is the first of the files.
    """
    named = [
        asked.format_phrase("file", name=name, tokens=count_text(text))
        for name, text in files
    ]
    names = asked.phrases["comma"].join(named)
    parts = [asked.format_phrase("read", files=names)]
    # Of a long file, the passages that were found came before the message.
    found = [each for each in asked.sent.statements if each.file]
    said = [*found, *asked.stated]
    hits = find_similar(said, asked.text) if is_question(asked.text) else []
    lines = (line for _, text in files for line in split_sentences(text))
    quoted = hits[0].text if hits else next(lines, "")
    if quoted:
        phrase = "file_says" if hits else "begins"
        parts.append(asked.format_phrase(phrase, text=clip_quote(quoted)))
    return asked.phrases["space"].join(parts)


def read_asked(chat: Sequence[BaseMessage]) -> Question:
    """Return the newest of these messages, with the contents of the others."""
    text = chat[-1].text.strip() if chat else ""
    stated = [s for s in read_message(chat[-1]) if not s.is_question] if chat else []
    phrases = find_phrases(split_files(text)[0])
    return Question(text, stated, read_sent(chat[:-1]), phrases)


def find_phrases(text: str) -> dict[str, str]:
    """Return the sentences in the language of a text, by name."""
    language = "zh" if is_chinese(text) else "en"
    return {name: known[language] for name, known in PHRASES.items()}


def clip_quote(text: str) -> str:
    return text if len(text) <= MAX_QUOTE else text[: MAX_QUOTE - 1] + "…"


def look_up_fact(asked: Question) -> str:
    """Return the user's name, or the earlier sentence closest to the question.

    "" if there is none.
    """
    questions = [s for s in split_sentences(asked.text) if is_question(s)]
    question = questions[-1] if questions else asked.text
    if NAME_QUESTION.search(question):
        name, place = asked.find_name()
        where = asked.describe_place(place)
        return asked.format_phrase("name", name=name, where=where) if name else ""
    hits = find_similar(asked.sent.statements, question)
    return asked.quote_statement(hits[0]) if hits else ""


def echo_message(asked: Question) -> str:
    """Repeat the message.

    The first reply of a conversation also says that the demo model writes it.
    """
    names = (find_name(statement.text) for statement in asked.stated)
    name = next(filter(None, names), "")
    parts = [asked.format_phrase("welcome", name=name)] if name else []
    parts.append(asked.format_phrase("noted", text=clip_quote(drop_fences(asked.text))))
    if not asked.sent.message_count and not asked.sent.summaries:
        parts.append(asked.format_phrase("hint"))
    return asked.phrases["space"].join(parts)


def find_name(text: str) -> str:
    """Return the name by which people introduce themselves in this sentence, or ""."""
    for pattern in STATED_NAMES:
        match = pattern.search(text)
        if match and not NO_NAME.fullmatch(match["name"]):
            return match["name"].strip(" '’-")
    return ""
