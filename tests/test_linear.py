"""Texts cannot freeze the process: its readers take time in proportion to them."""

import ast
import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel

from chatsite.contrib import organisation
from chatsite.contrib.archives import citations
from chatsite.features.importing.files import reading
from chatsite.features.tools import results
from chatsite.features.tools.tool_loop.call_requests import _read_arguments
from chatsite.llm.demo import chat_model, extractive, structured, tool_use
from chatsite.pages import diff, incremental, markdown
from chatsite.protocol import events
from memory.engine import replies
from memory.engine.cut_points import LATE
from memory.engine.rules import detection
from memory.engine.search import days, excerpts, ranking, values
from memory.engine.search.terms import extract_terms
from memory.engine.summaries import dropped, facts, material, prompts, schemas

from . import linear

# These remember what they have seen, ask the database, or start something.
NOT_TRIED = {
    "chatsite.pages.markdown.render_markdown",
    "chatsite.pages.templatetags.chat_tags.markdown",
    "chatsite.ops.demo_user.prepare_demo_user",
    "chatsite.metrics.note_request",
}


class Noted(BaseModel):
    """A summary, and the messages that it may be made of."""

    facts: list[str]


def said(text, seq=1):
    return HumanMessage(text, id=str(seq))


def read_request(text):
    """Return the quotes of the summariser's request, as the demo model reads them."""
    above = [SystemMessage("s"), said(text)]
    told = {"code": material.make_code(above), "messages": 1, "extends": False}
    asked = f"{prompts.MARKER}\n{json.dumps({**told, 'max_tokens': 100})}"
    return material.read_request([*above, said(asked, 2)])


def find_calls(text):
    names = ("remind_me", "calculate", "current_time", "search_transcript", "use")
    tools = [{"function": {"name": name}} for name in names]
    return tool_use.find_calls([said(text)], tools)


def answer_late(text):
    late = HumanMessage(text, additional_kwargs={LATE: 1})
    return tool_use.answer_from_results([late])


def write_incrementally(text):
    """A reply that comes in forty pieces, and is drawn after each."""
    reply = incremental.IncrementalRenderer()
    step = len(text) // 40 + 1
    for end in range(step, len(text) + step, step):
        reply.settle_text(text[:end])


AT = datetime(2026, 5, 3, tzinfo=UTC)
# What needs more than a text, or is not public: each reads one from outside.
OTHERS = {
    "answer": lambda text: chat_model.reply_to([said(text)]),
    "answer after it": lambda text: chat_model.reply_to([said(text), said("Hi?", 2)]),
    "answer_late": answer_late,
    "find_calls": find_calls,
    "summarize_extractively": lambda text: extractive.summarize_extractively(
        [f"User: {text}"], max_tokens=200
    ),
    "fill": lambda text: structured.fill_shape({"links": [""]}, text.splitlines()),
    "find_replaced": lambda text: detection.find_replaced(text, [text[:300]]),
    "find_dropped": lambda text: dropped.find_dropped([said(text)], "A summary."),
    "find_dropped by it": lambda text: dropped.find_dropped([said("We met.")], text),
    "find_missing": lambda text: facts.find_missing([text], [text]),
    "read_request": read_request,
    "parse a schema": lambda text: schemas.parse_summary(Noted, text),
    "split_reasoning": replies.split_reasoning,
    "read_query": lambda text: ranking.read_query(text, AT),
    "read_day_terms": lambda text: days.read_day_terms(text, AT),
    "read_statements": lambda text: values.read_statements(1, "user", text),
    "find_changes": lambda text: values.find_changes(
        values.read_statements(1, "user", text), frozenset(extract_terms(text[:300]))
    ),
    "find_span": lambda text: excerpts.find_span(text, frozenset({"a", "the"}), 200),
    "diff": lambda text: diff.diff_words(text, f"{text[1:]}a b c"),
    "_read_arguments": lambda text: _read_arguments(text, is_cut=False),
    "_read_arguments of some": lambda text: _read_arguments(text, is_cut=True),
    "render what is typed": lambda text: markdown.render_uncached(text, is_typed=True),
    "find_blocks": lambda text: markdown.find_blocks(text, {}),
    "write_incrementally": write_incrementally,
    "import": lambda text: reading._check_shape(text.encode()),
    "import a string": lambda text: reading._check_shape(b'"' + text.encode()),
    "citations": lambda text: citations.draw_citations(text, []),
    "sources": lambda text: citations.add_sources(text, [{"url": text}]),
    "events.parse": events.parse_command,
    "result of a tool": results.to_text,
}


# Names of models are no text from outside.
MODELS = ("chatsite.llm.providers.", "chatsite.turns.requests.")
FUNCTIONS = {
    name: function
    for name, function in {**linear.find_functions(), **OTHERS}.items()
    if name not in NOT_TRIED and not name.startswith(MODELS)
}


def test_patterns_are_linear():
    found = linear.find_patterns()
    assert len(found) > 150
    slow = [
        linear.find_slow(
            each.name,
            linear.run_pattern(each),
            linear.shapes_of(each.pattern),
            most=linear.bound_of(each.name),
        )
        for each in found
    ]
    assert list(map(str, filter(None, slow))) == []


def test_unloaded_modules_have_no_slow_pattern():
    """Tables of these modules exist only where a setting asks for them, so the source
    is read.
    """
    calls = {
        (node.func.attr, node.args[0].value)
        for path in Path(organisation.__file__).parent.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re.")
    }
    assert calls == {("sub", r"\W+"), ("sub", r"[^\w.@+-]")}
    for method, pattern in calls:
        found = linear.Found("own", re.compile(pattern), frozenset({method}))
        shapes = linear.shapes_of(found.pattern)
        assert linear.find_slow("own", linear.run_pattern(found), shapes) is None


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions_are_linear(name):
    run = linear.run_function(FUNCTIONS[name])
    slow = linear.find_slow(name, run, linear.SHAPES, most=linear.bound_of(name))
    assert slow is None, str(slow)


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"[?？]\W*$", "search"),
        (r",?\s+(?:can|could) you\b", "search"),
        (r"<summary [^>]*>(.*?)</summary>", "findall"),
        (r"[\w-]{1,64}\s*(?:\{.*\})?[.!]?\s*", "fullmatch"),
        (rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', "sub"),
    ],
)
def test_patterns_that_are_not_are_found(pattern, method):
    found = linear.Found("bad", re.compile(pattern), frozenset({method}))
    slow = linear.find_slow(
        "bad", linear.run_pattern(found), linear.shapes_of(found.pattern)
    )
    assert slow is not None


def test_a_function_that_counts_anew_is_found():
    def strip(text):
        while text.endswith(")") and text.count(")") > text.count("("):
            text = text[:-1]

    assert linear.find_slow("strip", strip, linear.SHAPES)


@pytest.mark.parametrize(
    "name",
    ["memory.engine.summaries.dropped.NO_WORDS", "memory.engine.rules.patterns.SLOTS"],
)
def test_patterns_are_found_wherever_modules_keep_them(name):
    assert any(each.name.startswith(name) for each in linear.find_patterns())
