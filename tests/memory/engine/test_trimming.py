"""The strategy "window": what leaves the window is not summarised."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.engine.compaction import MemoryState
from memory.engine.compose import compose_context
from memory.engine.plan import Compaction, plan_compaction_through, plan_merge
from memory.engine.policy import Policy
from memory.engine.summaries.summarizer import write_summary
from memory.engine.tokens import count_tokens

from .chats import Summarizer, assistant, block, chat, seqs, user

WINDOW = Policy(strategy="window", trigger=("messages", 6), keep=("messages", 2))
RUNNING = WINDOW.model_copy(update={"strategy": "running"})
LAYERED = WINDOW.model_copy(update={"strategy": "layered"})


async def step_on(state, summarizer):
    """Do what is due."""
    while step := state.next_step(count_tokens=count_tokens):
        made = await write_summary(summarizer, step, policy=state.policy)
        state = state.apply_step(step, made.text)
    return state


async def test_trimming_sends_no_request_and_no_summary():
    summarizer = Summarizer()
    state = await step_on(MemoryState(WINDOW).add_messages(*chat(6)), summarizer)
    assert summarizer.requests == []
    assert [(b.first_seq, b.last_seq, b.text) for b in state.blocks] == [(1, 4, "")]
    shown = compose_context(system_prompt="", blocks=state.blocks, window=state.window)
    assert seqs(shown.messages) == [5, 6]


async def test_later_trimmed_messages_join_the_earlier_block():
    state = MemoryState(WINDOW)
    for n in range(1, 41, 2):
        state = await step_on(
            state.add_messages(user(n), assistant(n + 1)), Summarizer()
        )
    assert [(b.first_seq, b.last_seq) for b in state.blocks] == [(1, 36)]
    assert state.version == 9


async def test_summary_does_not_extend_trimmed_messages():
    left = await step_on(MemoryState(WINDOW).add_messages(*chat(6)), Summarizer())
    for policy in (RUNNING, LAYERED):
        summarizer = Summarizer("short")
        state = MemoryState(policy, left.blocks, left.window, left.version)
        state = await step_on(state.add_messages(*chat(10)[6:]), summarizer)
        spans = [(b.first_seq, b.last_seq, b.text) for b in state.blocks]
        assert spans == [(1, 4, ""), (5, 8, "short")]
        (document,) = summarizer.documents
        assert [each["n"] for each in document["messages"]] == [5, 6, 7, 8]
        assert not document.get("previous_summary")


async def test_summary_stays_when_later_messages_are_trimmed():
    state = MemoryState(WINDOW, (block(1, 1, 4),), version=1)
    state = await step_on(state.add_messages(*chat(10)[4:]), Summarizer())
    assert [(b.first_seq, b.last_seq) for b in state.blocks] == [(1, 4), (5, 8)]
    assert state.blocks[0].text == "facts"


def test_manual_compaction_still_writes_a_summary():
    step = plan_compaction_through(WINDOW, chat(6), (), 2, count_tokens=count_tokens)
    assert not step.is_trim


def test_changed_messages_are_trimmed_again():
    state = MemoryState(WINDOW).add_messages(*chat(4))
    step = state.next_step(set_aside=(3, 4), count_tokens=count_tokens)
    assert (step.trigger.kind, step.is_trim, step.last_seq) == ("change", True, 2)


@pytest.mark.parametrize("most", [None, 10])
def test_merges_do_not_span_trimmed_messages(most):
    policy = Policy(fan_in=2, summary_budget=1)
    gap = block(2, 5, 8, text="", tokens=0)
    apart = [block(1, 1, 4), gap, block(3, 9, 12)]
    assert plan_merge(policy, apart, most=most) is None
    merge = plan_merge(policy, [*apart, block(4, 13, 16)], most=most)
    assert [each.version for each in merge.replaces] == [3, 4]


@given(
    st.lists(st.sampled_from(["window", "running", "layered", "topics"]), max_size=9)
)
def test_blocks_and_window_tile_whatever_the_strategies_were(strategies):
    """And no summary says it covers what it did not read."""
    state, read = MemoryState(WINDOW), {}
    for n, strategy in enumerate(strategies):
        policy = WINDOW.model_copy(update={"strategy": strategy, "summary_budget": 1})
        first = 6 * n + 1
        said = [(user if i % 2 else assistant)(i) for i in range(first, first + 6)]
        state = MemoryState(policy, state.blocks, state.window, state.version)
        state = state.add_messages(*said)
        while step := state.next_step(count_tokens=count_tokens):
            is_trim = isinstance(step, Compaction) and step.is_trim
            assert {each.is_trimmed for each in step.replaces} <= {is_trim}
            state = state.apply_step(step, "" if is_trim else "words")
            covered = {seq for each in step.replaces for seq in read[each.version]}
            if isinstance(step, Compaction):
                covered |= set(seqs(step.messages))
            read[state.version] = covered
            assert is_trim is (strategy == "window")
    places = [
        seq for each in state.blocks for seq in range(each.first_seq, each.last_seq + 1)
    ]
    assert places + seqs(state.window) == list(range(1, 6 * len(strategies) + 1))
    for each in state.blocks:
        assert read[each.version] == set(range(each.first_seq, each.last_seq + 1))
