"""Ends of replies, and their reasoning."""

import random
import time

import pytest

from memory.engine.replies import (
    ReasoningSplitter,
    is_error_report,
    split_reasoning,
    split_rest,
    strip_reasoning,
    why_cut_off,
    why_metadata_cut_off,
)
from tests.patience import within


@pytest.mark.parametrize(
    ("reason", "why"),
    [
        ("stop", ""),
        ("STOP", ""),
        ("end_turn", ""),
        ("eos_token", ""),
        ("tool_calls", ""),
        ("length", "length"),
        ("max_tokens", "length"),
        ("MAX_TOKENS", "length"),
        ("model_length", "length"),
        ("content_filter", "content_filter"),
        ("SAFETY", "content_filter"),
        (None, "no_finish_reason"),
        ("", "no_finish_reason"),
        ("null", "no_finish_reason"),
        ("error", "cut_off:error"),
        ("abort", "cut_off:abort"),
        ("insufficient_system_resource", "cut_off:insufficient_system_resource"),
        ("<b>oops</b> sk-SECRET", "cut_off:b_oops_b_sk_secret"),
        ("x" * 500, "cut_off:" + "x" * 30),
        ("取消", "cut_off:unknown"),
    ],
)
def test_complete_replies_have_a_known_reason(reason, why):
    assert why_cut_off(reason) == why
    assert len(why) <= 40


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ({}, ""),
        ({"finish_reason": None}, "no_finish_reason"),
        ({"finish_reason": "error"}, "cut_off:error"),
        ({"stop_reason": "end_turn"}, ""),
        ({"stop_reason": "max_tokens"}, "length"),
        ({"done_reason": "length"}, "length"),
        ({"stopReason": "guardrail_intervened"}, "cut_off:guardrail_intervened"),
    ],
)
def test_reasons_of_other_libraries_are_recognised(metadata, why):
    assert why_metadata_cut_off(metadata) == why


REPLIES = [
    ("plain", "", "plain"),
    ("  plain", "", "  plain"),
    ("<b>bold</b>", "", "<b>bold</b>"),
    ("<think>a</think>b", "a", "b"),
    ("\n<THINK>\na\n</Think>\n\nb", "a", "b"),
    ("<think></think>\n\nb", "", "b"),
    ("<thinking>a</thinking>b", "a", "b"),
    ("[THINK]a[/THINK]b", "a", "b"),
    ("◁think▷a◁/think▷b", "a", "b"),
    ("<think>a</think><think>c</think>b", "ac", "b"),
    ("<think>never closed", "never closed", ""),
    ("<thin", "", "<thin"),
    (
        "<|channel|>analysis<|message|>a<|end|><|start|>assistant"
        "<|channel|>final<|message|>b",
        "a<|end|><|start|>assistant",
        "b",
    ),
    ("<|channel>thought\na<channel|>b", "a", "b"),
    ("<|channel>thought\n<channel|>b", "", "b"),
    ("<|START_THINKING|>a<|END_THINKING|>b", "a", "b"),
    ("<|begin_of_thought|>a<|end_of_thought|>b", "a", "b"),
    ("<longcat_think>a</longcat_think>b", "a", "b"),
    ("Use <think>x</think> so.", "", "Use <think>x</think> so."),
    ("Iı <think>", "", "Iı <think>"),
]


@pytest.mark.parametrize(("text", "reasoning", "answer"), REPLIES)
def test_reasoning_is_separated_from_the_answer(text, reasoning, answer):
    assert split_reasoning(text) == (reasoning, answer)


@pytest.mark.parametrize(("text", "reasoning", "answer"), REPLIES)
@pytest.mark.parametrize("seed", range(5))
def test_pieces_of_a_reply_give_the_same_result(text, reasoning, answer, seed):
    dice, splitter, pieces, rest = random.Random(seed), ReasoningSplitter(), [], text
    while rest:
        size = dice.randint(1, 6)
        pieces.append(splitter.feed(rest[:size]))
        rest = rest[size:]
    pieces.append(splitter.flush_rest())
    assert "".join(pieces) == answer
    assert splitter.reasoning.strip() == reasoning


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("So they ask.\n</think>\n\nThe answer", "The answer"),
        ('Hmm.</think>{"a": 1}', '{"a": 1}'),
        ("First count. Then say it.</think>42", "42"),
        ("First count. Then say it. </think> 42 it is", "42 it is"),
        ("先数一下。</think>四十二", "四十二"),
        ("so it is 42</think>42", "42"),
        ("so it is 42 </think> The answer is 42.", "The answer is 42."),
        ("Count first.<channel|>42", "42"),
        ("Count `a` first.[/THINK]42", "42"),
        ("</think>\n\n42", "42"),
        ("analysisThey ask for 6 × 7.assistantfinal42", "42"),
        ("analysis of the poem: it is short", "analysis of the poem: it is short"),
        ("The tag </think> ends it.", "The tag </think> ends it."),
        ("The tag</think> ends it.", "The tag</think> ends it."),
        ("Write “</think>” there.", "Write “</think>” there."),
        ("It ends (</think>) there.", "It ends (</think>) there."),
        ("It is `</think>`, yes.", "It is `</think>`, yes."),
        ("标签</think>表示结束。", "标签</think>表示结束。"),
        ("A <think> and then.</think>so", "A <think> and then.</think>so"),
        ("```\n</think>\n```\nis code", "```\n</think>\n```\nis code"),
        ('{"a": "x\\n</think>"}', '{"a": "x\\n</think>"}'),
        ("</think>", "</think>"),
    ],
)
def test_separate_closing_tag_alone_ends_the_reasoning(text, answer):
    assert split_reasoning(text)[1] == answer


@pytest.mark.parametrize(
    ("text", "reasoning", "answer"),
    [
        ("One.\n<think>\na\n</think>\nTwo.", "a", "One.\n\nTwo."),
        ("<think>a</think>One.\n<think>b</think>\nTwo.", "a\n\nb", "One.\n\nTwo."),
        ("One.\n<|channel>thought\na<channel|>Two.", "a", "One.\nTwo."),
        ("One.\n```\n<think>a</think>\n```\nTwo.", "", None),
        ("One.\n<think>a", "", None),
    ],
)
def test_reasoning_between_lines_is_separated(text, reasoning, answer):
    assert split_reasoning(text) == (reasoning, text if answer is None else answer)


@pytest.mark.parametrize(
    ("known", "text", "reasoning", "answer"),
    [
        ("a", "\n</think>\n\nb", "a", "b"),
        ("a", "b.</think>c", "a", "b.</think>c"),
        ("a", "b", "a", "b"),
        ("", "a.</think>b", "a.", "b"),
    ],
)
def test_reasoning_that_came_separately_is_kept(known, text, reasoning, answer):
    assert split_rest(known, text) == (reasoning, answer)


@pytest.mark.parametrize(
    "text",
    [
        *("x</think>" * 20_000, "<think>\n" * 20_000, "x </think> x" * 15_000),
        "a\n" + "<think>a</think>\n" * 10_000,
        "a\n```\n" + "<think>\n" * 20_000 + "</think>",
        "a\n" + "<think>\n<thought>\n" * 9_000,
    ],
)
def test_hostile_replies_are_parsed_quickly(text):
    with within(1, time.thread_time):
        split_reasoning(text)


def test_reasoning_between_lines_is_not_part_of_a_summary():
    text = "Ann likes tea.\n<think>Wait, was it tea?\n</think>\nShe lives in Oslo."
    assert "Wait" not in strip_reasoning(text)
    assert "Oslo" in strip_reasoning(text)


@pytest.mark.parametrize(
    ("text", "is_error"),
    [
        ('{"error": {"message": "Overloaded", "code": 529}}', True),
        ('```json\n{"error": "rate limited"}\n```', True),
        ('{"object": "error", "message": "no"}', True),
        ('{"detail": "Not Found"}', True),
        ('{"error": null, "facts": ["x"]}', False),
        ('{"facts": ["an error was found"]}', False),
        ("The error was {found}.", False),
        ('{"error": cut', False),
        ("[1]", False),
        ("{" * 100_000, False),
    ],
)
def test_error_object_as_text_is_recognised(text, is_error):
    assert is_error_report(text) is is_error
