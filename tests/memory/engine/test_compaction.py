"""The state machine of a memory, without a model, a table or a clock."""

import pytest

from memory.engine.compaction import Important, MemoryState, find_important
from memory.engine.plan import Compaction, Merge
from memory.engine.policy import PRESETS, Policy
from memory.engine.summaries.summarizer import write_summary
from memory.engine.tokens import count_tokens

from .chats import Summarizer, block, chat, seqs, user

FOUR_KEEP_TWO = {"trigger": ("messages", 4), "keep": ("messages", 2)}


def state(count=0, blocks=(), **policy):
    return MemoryState(
        Policy(**{**FOUR_KEEP_TWO, **policy}),
        blocks=tuple(blocks),
        window=tuple(chat(count)),
        version=max((each.version for each in blocks), default=0),
    )


def next_step(memory, **conditions):
    return memory.next_step(count_tokens=count_tokens, **conditions)


def settle(memory, text="short"):
    """Take all steps that are due, as a driver does, and name them."""
    taken = []
    while step := next_step(memory):
        taken.append((type(step).__name__, step.first_seq, step.last_seq))
        memory = memory.apply_step(step, text)
    return memory, taken


class TestCompaction:
    def test_step_is_not_due_below_the_trigger(self):
        assert next_step(state(3)) is None

    def test_summary_replaces_its_messages(self):
        before = state(4)
        step = next_step(before)
        after = before.apply_step(step, "They talked.")
        assert [(b.version, b.level, b.text) for b in after.blocks] == [
            (1, 0, "They talked.")
        ]
        assert seqs(step.messages) == [1, 2]
        assert seqs(after.window) == [3, 4]
        assert (after.cutoff, after.version) == (2, 1)
        assert next_step(after) is None

    def test_previous_state_is_unchanged(self):
        before = state(4)
        before.apply_step(next_step(before), "They talked.")
        assert (before.blocks, before.cutoff, len(before.window)) == ((), 0, 4)

    def test_running_summary_replaces_the_one_it_extends(self):
        memory, _ = settle(state(4, strategy="running"))
        memory, taken = settle(memory.add_messages(*chat(6)[4:]), "More.")
        assert taken == [("Compaction", 1, 4)]
        assert [(b.version, b.text) for b in memory.blocks] == [(2, "More.")]
        assert memory.cutoff == 4

    def test_version_numbers_are_not_reused(self):
        gone = state(4)
        gone = MemoryState(gone.policy, window=gone.window, version=7)
        assert gone.apply_step(next_step(gone), "x").blocks[0].version == 8

    def test_force_plans_a_step_below_the_trigger(self):
        step = next_step(state(3), force=True)
        assert (step.trigger.kind, seqs(step.messages)) == ("manual", [1, 2])

    def test_disabled_policy_plans_no_step(self):
        blocks = [block(1, 1, 2, tokens=9000), block(2, 3, 4, tokens=9000)]
        off = state(9, blocks, enabled=False, fan_in=2)
        assert next_step(off, force=True, set_aside=(12, 14)) is None


class TestMerges:
    def blocks(self, count):
        return [block(n, 2 * n - 1, 2 * n, tokens=900) for n in range(1, count + 1)]

    def test_merge_comes_before_a_compaction(self):
        step = next_step(state(4, self.blocks(2), fan_in=2))
        assert (type(step), step.replaces) == (Merge, tuple(self.blocks(2)))

    def test_merge_keeps_the_window_and_the_order(self):
        before = state(2, self.blocks(3), fan_in=2)
        after = before.apply_step(next_step(before), "short")
        spans = [(b.version, b.level, b.first_seq, b.last_seq) for b in after.blocks]
        assert spans == [(4, 1, 1, 4), (3, 0, 5, 6)]
        assert after.window == before.window

    def test_steps_continue_until_none_is_due(self):
        memory = state(fan_in=2, summary_budget=1)
        done = []
        for message in chat(12):
            memory, taken = settle(memory.add_messages(message))
            done += taken
        assert done == [
            ("Compaction", 1, 2),
            ("Compaction", 3, 4),
            ("Merge", 1, 4),
            ("Compaction", 5, 6),
            ("Compaction", 7, 8),
            ("Merge", 5, 8),
            ("Merge", 1, 8),
            ("Compaction", 9, 10),
        ]

    def test_summaries_of_all_levels_merge_when_little_fits(self):
        blocks = self.blocks(2)
        assert next_step(state(2, blocks)) is None
        step = next_step(state(2, blocks), most_summaries=1000)
        assert step.replaces == tuple(blocks)


class TestSummariesSetAside:
    def test_messages_before_a_waiting_summary_are_summarised_first(self):
        memory = state(6, [block(1, 1, 2)])
        memory = MemoryState(memory.policy, memory.blocks, memory.window[2:], 1)
        step = next_step(memory, set_aside=(5, 6))
        assert (step.trigger.kind, step.first_seq, step.last_seq) == ("change", 3, 4)
        assert (seqs(step.messages), seqs(step.kept)) == ([3, 4], [5, 6])

    def test_waiting_summary_is_rewritten_when_no_message_precedes_it(self):
        memory = MemoryState(state().policy, window=tuple(chat(6)[2:]))
        step = next_step(memory, set_aside=(3, 4))
        assert (step.first_seq, step.last_seq) == (1, 4)
        assert seqs(step.messages) == [3, 4]

    def test_unfinished_turn_waits(self):
        assert next_step(state(3), set_aside=(3, 4), open_from=1) is None


@pytest.mark.parametrize("preset", PRESETS)
def test_summaries_and_window_tile_the_conversation(preset):
    memory = MemoryState(Policy(preset=preset, summary_budget=50, fan_in=2))
    for message in chat(160, "x" * 900):
        memory, _ = settle(memory.add_messages(message))
        expected = 1
        for each in memory.blocks:
            assert each.first_seq == expected
            expected = each.last_seq + 1
        assert expected == memory.cutoff + 1
        numbers = range(memory.cutoff + 1, int(message.id) + 1)
        assert seqs(memory.window) == list(numbers)


class TestWriting:
    async def written(self, step, covered=()):
        summarizer = Summarizer("done")
        await write_summary(summarizer, step, covered, policy=Policy())
        return summarizer.documents[0]

    async def test_compaction_reads_its_messages_and_the_extended_summary(self):
        memory, _ = settle(state(4, strategy="running"), "Before.")
        step = next_step(memory.add_messages(*chat(6)[4:]))
        read = await self.written(step)
        assert read["previous_summary"] == "Before."
        assert [each["n"] for each in read["messages"]] == [3, 4]

    async def test_merge_reads_the_messages_or_else_the_summaries(self):
        blocks = [block(1, 1, 2, tokens=900), block(2, 3, 4, tokens=900)]
        step = next_step(state(0, blocks, fan_in=2))
        read = await self.written(step, chat(4))
        assert [each["n"] for each in read["messages"]] == [1, 2, 3, 4]
        assert len((await self.written(step))["summaries"]) == 2


class TestImportant:
    POLICY = Policy(important=["order"])

    def step(self, *texts):
        messages = tuple(user(n, text) for n, text in enumerate(texts, start=1))
        return Compaction(None, messages, (), None, 0, 1, len(texts))

    def test_important_messages_are_found_as_they_leave_the_window(self):
        step = self.step("my order", "hello", "order 2")
        assert find_important(self.POLICY, step) == Important((1, 3))

    def test_unsearched_messages_are_listed(self, monkeypatch):
        monkeypatch.setattr(
            "memory.engine.compaction.PatternSearch.has_match", lambda *_: None
        )
        assert find_important(self.POLICY, self.step("a", "b")).unread == (1, 2)

    def test_messages_of_a_merge_are_not_searched_again(self):
        merge = Merge(None, (block(1, 1, 2, text="order"), block(2, 3, 4)), 1)
        assert find_important(self.POLICY, merge) == Important()
