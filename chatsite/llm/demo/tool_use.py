"""The calls of the demo model, and its answers from their results.

Each rule reads the message and returns the arguments of one tool, or nothing.
"""

import html
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby, islice
from typing import Any

from langchain_core.messages import BaseMessage

from memory.engine.cut_points import find_newest_question, is_late

from .answers import (
    AND_QUESTION,
    Question,
    clip_quote,
    find_answer,
    find_phrases,
    read_asked,
)
from .extractive import is_question
from .statements import find_similar, read_fenced

Arguments = dict[str, Any]
MAX_CHARS = 300  # of a message that may want a tool

EXPRESSION = r"(?P<sum>[\d(.][\d\s.,+\-−*/×÷^%()]*[\d)])"
CALCULATION = re.compile(
    r"\W*?(?:(?:please )?(?:calculate|compute|work out|how much is|what(?:'s|’s| is)))"
    rf"?(?:请|帮我)?(?:计算|算一下|算算|算)?\s*{EXPRESSION}"
    r"\s*(?:等于(?:多少|几)|是多少)?\s*[=?？.。]*\s*",
    re.IGNORECASE,
)
OPERATOR = re.compile(r"[\d)]\s*[+\-−*/×÷^%]")
DATE = re.compile(r"\d{4}-\d\d?-\d\d?")
CLOCK = re.compile(
    r"what(?:'s|’s| is) (?:the |today'?s? )?(?:current )?(?:time|date)\b(?! of)"
    r"|what time is it|(?:现在|当前)(?:是)?几点|几点了|今天(?:是)?(?:几号|星期几)",
    re.IGNORECASE,
)
ZONE = re.compile(r"\b[A-Z][A-Za-z]+/[A-Z][A-Za-z_]+\b")
NUMBERS = {"a": 1, "an": 1, "one": 1, "half an": 0.5, "一": 1, "半": 0.5}
NUMBER = r"(?P<n>\d+(?:\.\d+)?|" + "|".join(sorted(NUMBERS, reverse=True)) + ")"
UNITS = {"sec": 1 / 60, "min": 1, "h": 60, "d": 1440}
UNITS |= {"秒": 1 / 60, "分": 1, "小": 60, "天": 1440}
IN_ENGLISH = rf"in {NUMBER} (?P<unit>sec(?:ond)?s?|min(?:ute)?s?|hours?|days?)\b"
TO = r"(?:to |that |about |of )?"
REMINDERS = (
    re.compile(rf"\bremind me {IN_ENGLISH},? {TO}(?P<text>.+)", re.IGNORECASE),
    re.compile(rf"\bremind me {TO}(?P<text>.+?) {IN_ENGLISH}", re.IGNORECASE),
    re.compile(rf"{NUMBER}个?(?P<unit>秒|分钟|小时|天)(?:之|以)?后?提醒我(?P<text>.+)"),
)
SEARCHES = (
    re.compile(
        r"\bwhat (?:did|have) (?:i|we|you) (?:say|said|tell|told|decide|decided)"
        r"(?: you)? (?:about|on) (?P<query>.+)",
        re.IGNORECASE,
    ),
    re.compile(
        r"\bsearch (?:the|this|our) (?:conversation|transcript) for (?P<query>.+)",
        re.IGNORECASE,
    ),
    re.compile(r"关于(?P<query>.+?)[，,]?\s*(?:我|我们|你)\S{0,8}?(?:说|提|决定)"),
    re.compile(r"搜索(?:整个)?对话(?:里|中)?的?(?P<query>.+)"),
)
NOISE = re.compile(
    r"\b(?:at the (?:beginning|start)|earlier|before)\b|一开始|之前|以前", re.IGNORECASE
)
# "Use weather {"city": "Oslo"}": for tools that have no rule of their own.
BY_NAME = re.compile(
    r"\W*(?:please )?(?:use|call|run|请?使用|请?调用)\s*(?:the tool )?"
    r"[`“\"]?(?P<name>[\w-]{1,64})[`”\"]?\s*+(?P<args>\{.*\})?[.。!]?\s*",
    re.IGNORECASE | re.DOTALL,
)
WEB_SEARCHES = (
    re.compile(r"\bsearch the (?:web|internet) for (?P<query>.+)", re.IGNORECASE),
    re.compile(r"(?:上网|在?网上)(?:搜索|搜一下|搜|查一下|查)(?P<query>.+)"),
    re.compile(r"搜索网页[:：]?(?P<query>.+)"),
)
PAGE = re.compile(
    r"(?:\b(?:read|open)\b|读|打开)[^:/]{0,40}?(?P<address>https?://[^\s\u3000-\u9fff]+)",
    re.IGNORECASE,
)
# What a search of the web, or a page, says with its number.
SOURCE = re.compile(r'<source number="(\d{1,9})"[^<>]*+>([^<]*+)</source>')
MOST_SOURCES = 3
NUMBER_ONLY = re.compile(r"-?\d[\d.]*(?:e[+-]?\d+)?")
LATE_RESULT = re.compile(
    r'<result(?: tool="(?P<tool>[^"<>]*+)")?[^<>]*+>'
    r"(?P<text>(?:[^<]++|<(?!/?result\b))*+)</result>"
)


def find_calls(
    messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]]
) -> list[tuple[str, Arguments]]:
    """Return the calls for the newest message: names and arguments.

    `tools` have the form of OpenAI's requests.
    """
    names = {str(each["function"]["name"]) for each in tools if "function" in each}
    newest = messages[-1] if messages else None
    if newest is None or newest.type != "human" or is_late(newest):
        return []
    text = newest.text.strip()
    if (found := BY_NAME.fullmatch(text)) and found["name"] in names:
        return [(found["name"], _parse_tool_arguments(found["args"]))]
    parts = AND_QUESTION.split(text) if len(text) <= MAX_CHARS else []
    calls = [call for part in parts if (call := _find_call(part, names))]
    can_search = "search_transcript" in names and parts and is_question(text)
    if not calls and can_search and not find_answer(messages)[1]:
        calls.append(("search_transcript", {"query": text}))
    return calls


def _find_call(part: str, names: set[str]) -> tuple[str, Arguments] | None:
    """Return the call of the first available tool whose rule fits the part, or None."""
    for name, rule in RULES.items():
        if name in names and (arguments := rule(part)) is not None:
            return name, arguments
    return None


def _parse_tool_arguments(text: str | None) -> Arguments:
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _read_calculation(text: str) -> Arguments | None:
    found = CALCULATION.fullmatch(text)
    if not found or not OPERATOR.search(found["sum"]) or DATE.fullmatch(found["sum"]):
        return None
    return {"expression": found["sum"].strip()}


def _tell_time(text: str) -> Arguments | None:
    if not CLOCK.search(text):
        return None
    zone = ZONE.search(text)
    return {"time_zone": zone[0]} if zone else {}


def _read_reminder(text: str) -> Arguments | None:
    for pattern in REMINDERS:
        if found := pattern.search(text):
            n, unit = found["n"].lower(), found["unit"].lower()
            each = next(size for name, size in UNITS.items() if unit.startswith(name))
            minutes = round(float(NUMBERS.get(n, 0) or n) * each, 4)
            what = found["text"].strip(" .。!！，,")
            return {"text": what, "in_minutes": minutes} if what else None
    return None


def _read_search(
    text: str, patterns: Sequence[re.Pattern[str]] = SEARCHES
) -> Arguments | None:
    for pattern in patterns:
        if found := pattern.search(text):
            query = NOISE.sub(" ", found["query"]).strip(" .。?？!！，,“”\"'")
            return {"query": " ".join(query.split())} if query else None
    return None


def _open_page(text: str) -> Arguments | None:
    found = PAGE.search(text)
    return {"address": found["address"].rstrip(".,;:!?)")} if found else None


RULES: dict[str, Callable[[str], Arguments | None]] = {
    "remind_me": _read_reminder,
    "calculate": _read_calculation,
    "current_time": _tell_time,
    "search_web": partial(_read_search, patterns=WEB_SEARCHES),
    "read_page": _open_page,
    "search_transcript": _read_search,
}


def answer_from_results(messages: Sequence[BaseMessage]) -> str:
    """Return the reply once tools have answered.

    "" where no result is the newest message.
    """
    if messages and is_late(messages[-1]):
        return _tell_late(messages[-1].text)
    question = find_newest_question(messages)
    steps = messages[question + 1 :]
    calls = [call for m in steps for call in getattr(m, "tool_calls", None) or ()]
    results = {m.tool_call_id: m.text for m in steps if m.type == "tool"}
    if not results or question < 0:
        return ""
    chat = [m for m in messages[: question + 1] if m.type in ("human", "ai", "tool")]
    asked = read_asked(chat)
    said = [
        _describe_result(asked, call["name"], call["args"], results[call["id"]])
        for call in calls
        if call["id"] in results
    ]
    return asked.phrases["space"].join(text for text, _ in groupby(said))


def _tell_late(text: str) -> str:
    """Quote a result that came after its turn."""
    found = LATE_RESULT.search(text)
    result = html.unescape(found["text"]) if found else text
    tool = html.unescape(found["tool"] or "") if found else ""
    return find_phrases(result)["result"].format(tool=tool, text=clip_quote(result))


def _describe_result(
    asked: Question, name: str, arguments: Arguments, result: str
) -> str:
    if name == "calculate" and NUMBER_ONLY.fullmatch(result):
        return f"{arguments.get('expression', '')} = {result}"
    if name == "search_transcript":
        return _tell_found(asked, str(arguments.get("query", "")), result)
    if name in ("search_web", "read_page") and (cited := _cite_sources(result)):
        return cited
    return asked.format_phrase("result", tool=name, text=clip_quote(result))


def _cite_sources(result: str) -> str:
    said = [
        (number, " ".join(html.unescape(text).split()))
        for number, text in SOURCE.findall(result)
    ]
    quotes = (f"“{clip_quote(text)}” [{number}]" for number, text in said if text)
    return " ".join(islice(quotes, MOST_SOURCES))


def _tell_found(asked: Question, query: str, result: str) -> str:
    statements = [s for s in read_fenced(result) if not s.is_question]
    if not statements:
        return asked.format_phrase("not_found", query=query)
    [best, *_] = find_similar(statements, query) or statements
    return asked.quote_statement(best)
