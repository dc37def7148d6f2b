"""The cases of LangMem's `summarize_messages`, through the policy made of its numbers.

As in its own tests a message counts as one token.
"""

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from memory.engine.compose import compose_context
from memory.engine.plan import plan_compaction
from memory.engine.policy import Policy
from memory.engine.summaries.summarizer import summarize_window
from memory.engine.tokens import count_tokens

from ..engine.chats import (
    Summarizer,
    assistant,
    block,
    chat,
    seqs,
    tool,
    user,
)


def plan(policy, messages, blocks=(), count=len):
    return plan_compaction(policy, messages, blocks, count_tokens=count)


def numbers(max_tokens, before=None):
    """The policy for LangMem's max_tokens and max_tokens_before_summary, with
    max_summary_tokens=1."""
    least = before or max_tokens
    return Policy(
        preset="langmem",
        trigger=("tokens", least),
        keep=("tokens", min(max_tokens - 1, least - 1)),
        fold_least=least,
        max_summary_tokens=1,
    )


@pytest.mark.parametrize("messages", [[], chat(5)])
def test_preset_does_nothing_below_its_limit(messages):
    assert plan(numbers(6), messages) is None


@pytest.mark.parametrize(
    ("count", "max_tokens", "before", "kept"),
    [(9, 6, None, 3), (9, 6, 8, 1), (41, 22, None, 19), (9, 6, 9, 9)],
)
def test_preset_compacts_the_same_messages(count, max_tokens, before, kept):
    compaction = plan(numbers(max_tokens, before), chat(count))
    assert count - (len(compaction.messages) if compaction else 0) == kept
    assert compaction is None or seqs(compaction.kept) == list(
        range(count - kept + 1, count + 1)
    )


def test_default_numbers_compact_the_same_messages():
    messages = [*chat(45), user(46)]
    compaction = plan(Policy(preset="langmem"), messages, count=count_tokens)
    # Forty messages of 100 tokens are 4,000.
    assert seqs(compaction.messages) == list(range(1, 41))


def test_preset_compacts_more_if_the_rest_is_too_long():
    messages = [user(1), assistant(2), *chat(40)[2:]]
    assert len(plan(numbers(6), messages).kept) <= 5


def test_preset_keeps_the_newest_turn_of_any_length():
    assert plan(numbers(6), [user(1), *map(assistant, range(2, 20))]) is None
    compaction = plan(numbers(6), [*chat(8), user(9), *map(assistant, range(10, 30))])
    assert seqs(compaction.messages) == list(range(1, 9))


def test_preset_compacts_nothing_right_after_a_compaction():
    compaction = plan(numbers(6), chat(9))
    summary = block(1, compaction.first_seq, compaction.last_seq)
    assert plan(numbers(6), list(compaction.kept), [summary]) is None


def test_preset_extends_the_summary_with_new_messages_only():
    first = block(1, 1, 6)
    compaction = plan(numbers(6), chat(16)[6:], [first])
    assert compaction.previous == first
    assert (compaction.first_seq, seqs(compaction.messages)[0]) == (1, 7)


def test_preset_compacts_a_call_with_its_results():
    window = [*chat(4), user(5), assistant(6, calls=["a", "b"])]
    window += [tool(7, "a"), tool(8, "b"), assistant(9), user(10)]
    compaction = plan(numbers(6), window)
    assert seqs(compaction.kept) == [10]


@pytest.mark.parametrize("content", ["", [], [{"type": "text", "text": ""}]])
def test_messages_without_content_are_counted(content):
    messages = [HumanMessage(content, id=str(n)) for n in range(1, 1200)]
    assert count_tokens(messages) == 4 * len(messages)
    compaction = plan(Policy(preset="langmem"), messages, count=count_tokens)
    assert len(compaction.messages) == 1000


@pytest.mark.parametrize("content", ["", []])
async def test_messages_without_content_are_summarised_among_others(content):
    messages = [HumanMessage("tea", id="1"), AIMessage(content, id="2"), user(3)]
    invoke = Summarizer()
    made = await summarize_window(invoke, messages, policy=Policy(preset="langmem"))
    assert [each["n"] for each in invoke.documents[0]["messages"]] == [1, 2, 3]
    assert "tea" in made.text


@pytest.mark.parametrize("content", ["", []])
def test_messages_without_content_are_sent_as_they_are(content):
    window = [HumanMessage(content, id="1"), AIMessage(content, id="2")]
    assert compose_context(system_prompt="", window=window).messages == window
