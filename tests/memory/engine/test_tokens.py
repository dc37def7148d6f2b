import pytest
from langchain_core.messages import AIMessage, HumanMessage

from memory.engine.tokens import (
    count_message,
    count_parts,
    count_text,
    count_tokens,
    remember_counts,
    scale_counter,
    share_out,
)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("abc", 1), ("abcd", 1), ("abcde", 2), ("你好", 2), ("😀", 1)],
)
def test_counter_counts_a_quarter_of_the_bytes(text, tokens):
    assert count_text(text) == tokens


def test_chinese_character_is_three_quarters_of_a_token():
    assert count_text("我" * 1000) == 750


def test_counter_accepts_a_lone_surrogate():
    assert count_text("\ud800") == 1


def test_counter_adds_the_overhead_of_a_message():
    assert count_message(HumanMessage("abcd")) == 5
    assert count_message(HumanMessage("")) == 4


def test_counter_includes_tool_calls():
    call = {"name": "search", "args": {"q": "x" * 100}, "id": "1"}
    assert count_message(AIMessage("", tool_calls=[call])) > 25


def test_counter_includes_the_text_of_content_blocks():
    blocks = [{"type": "text", "text": "abcd"}, {"type": "text", "text": "efgh"}]
    assert count_message(HumanMessage(blocks)) == 6


def test_counter_sums_messages_and_scales_them():
    messages = [HumanMessage("abcd"), HumanMessage("abcd")]
    assert count_tokens(messages) == 10
    assert scale_counter(1.25)(messages) == 13
    assert count_tokens([]) == scale_counter(2)([]) == 0


def test_counter_is_called_once_for_the_same_messages():
    asked = []

    def count(messages):
        asked.append(list(messages))
        return len(messages)

    once = remember_counts(count)
    messages = [HumanMessage("a"), HumanMessage("b")]
    assert [once(messages), once(list(messages)), once(tuple(messages))] == [2, 2, 2]
    assert len(asked) == 1
    assert [once(messages[:1]), once([HumanMessage("a")]), once([])] == [1, 1, 0]
    assert len(asked) == 4


@pytest.mark.parametrize("ratio", [0.75, 1.0, 1.37, 4.0])
def test_parts_sum_to_the_count_of_all_messages(ratio):
    sections = [
        (f"part {n}", [HumanMessage("x" * size) for size in range(n)])
        for n in range(1, 30)
    ]
    every = [message for _, messages in sections for message in messages]
    parts = count_parts(sections, ratio=ratio, tools=700, added=900)
    assert parts[:2] == (("tools", 700), ("provider", 200))
    whole = scale_counter(ratio)(every)
    assert sum(count for _, count in parts[2:]) == whole


@pytest.mark.parametrize("total", [0, 7, 100, 12_345])
def test_parts_that_are_shared_out_sum_to_the_total(total):
    parts = share_out([("a", 3), ("b", 0), ("c", 11)], total)
    assert sum(count for _, count in parts) == total
    assert share_out([], total) == ()
