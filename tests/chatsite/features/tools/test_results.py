"""Results of tools as text: storable whatever they are, and within the budget."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import ToolMessage

from chatsite.features.tools import results
from chatsite.features.tools.builtin.builtin_tools import TOOLS
from chatsite.features.tools.results import NOTHING, refine
from memory.engine.tokens import MESSAGE_OVERHEAD, count_text
from memory.transcript import is_storable

TOOL = TOOLS[0]


class Unprintable:
    def __str__(self):
        return "an object"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("It is noon.", "It is noon."),
        ("", NOTHING),
        (None, NOTHING),
        (" \n", NOTHING),
        ([], "[]"),
        (42, "42"),
        ({"city": "北京"}, '{"city": "北京"}'),
        (b"plain", "plain"),
        (b"\xff\xfe\x00", "[3 bytes that are no text]"),
        ("a\0b\ud800c", "a\ufffdb\ufffdc"),
        (Unprintable(), '"an object"'),
        (ToolMessage("inside", tool_call_id="c"), "inside"),
        ([{"type": "text", "text": "one"}, "two"], "one\ntwo"),
        ([{"type": "image", "base64": "AAAA"}], "[image: 3 bytes]"),
        (
            [{"type": "file", "url": "https://x.test/a", "mime_type": "a/b"}],
            "[link: a/b, https://x.test/a]",
        ),
    ],
)
def test_every_value_becomes_a_text(content, expected):
    assert refine(content, TOOL, 7) == (expected, "")


def test_a_circle_becomes_a_text():
    circle = []
    circle.append(circle)
    assert refine(circle, TOOL, 7).whole == "[[...]]"


def test_a_long_result_is_kept_whole_and_sent_in_part(settings):
    text = "\n".join(f"line {number}" for number in range(3_000))
    whole, sent = refine(text, TOOL, 12)
    assert whole == text
    shown = int(re.search(r"\[shortened: ([\d,]+) of", sent)[1].replace(",", ""))
    assert sent[:shown] == text[:shown]
    assert text[shown] == "\n"
    assert sent.endswith(
        f" of {len(text):,} characters; read_messages from #12 to #12, start {shown}, "
        "reads the rest]"
    )
    assert count_text(sent) + MESSAGE_OVERHEAD <= settings.TOOL_RESULT_TOKENS


def test_result_that_just_fits_is_not_shortened(settings):
    room = (settings.TOOL_RESULT_TOKENS - MESSAGE_OVERHEAD) * 4
    assert refine("x" * room, TOOL, 1).sent == ""
    assert refine("x" * (room + 1), TOOL, 1).sent != ""


@pytest.mark.parametrize("letter", ["x", "汉", "🦊", "\n", " ", "é"])
def test_five_megabytes_cost_at_most_the_budget(letter, settings):
    whole, sent = refine(f"{letter}." * (5 * 1024 * 1024 // 4), TOOL, 2**31 - 1)
    assert len(whole) > 2_000_000
    assert 0 < count_text(sent) <= settings.TOOL_RESULT_TOKENS
    assert "shortened" in sent


def test_more_than_can_be_kept_is_cut_and_says_so(monkeypatch):
    monkeypatch.setattr(results, "MAX_CHARS", 100)
    whole = refine("x" * 300, TOOL, 1).whole
    assert whole == "x" * 100 + "\n[cut: the first 100 of 300 characters are kept]"


def test_a_tool_can_have_a_budget_of_its_own(settings):
    from dataclasses import replace

    small = replace(TOOL, result_tokens=100)
    assert count_text(refine("word " * 500, small, 1).sent) <= 100
    # Of one that is gone by now.
    assert refine("word " * 100, None, 1).sent == ""


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text() | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_values_of_any_kind_can_be_stored(content):
    whole, sent = refine(content, TOOL, 3)
    assert is_storable(whole)
    assert is_storable(sent)
    assert whole.strip()
    json.dumps([whole, sent])
