"""The memory of a conversation as a state machine: the step that is due and its result.

Pure. A driver reads the messages, has the summary of a step written (`write_summary` in
summaries/summarizer.py), stores it, and repeats until no step is due.
"""

from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import Any, Self

from langchain_core.messages import BaseMessage

from .compose import SummaryBlock
from .important_patterns import PatternSearch
from .plan import (
    Compaction,
    Step,
    TriggerHit,
    number_window,
    plan_compaction,
    plan_merge,
)
from .policy import Policy
from .tokens import TokenCounter, count_text


@dataclass(frozen=True, slots=True)
class MemoryState:
    """The view of a conversation: active summaries, then the messages after them.

    `version` is the number of the newest summary.
    """

    policy: Policy
    blocks: tuple[SummaryBlock, ...] = ()
    window: tuple[BaseMessage, ...] = ()
    version: int = 0

    @property
    def cutoff(self) -> int:
        """The number of the last message before the window, or 0."""
        return self.blocks[-1].last_seq if self.blocks else 0

    @property
    def summary_tokens(self) -> int:
        return sum(block.tokens for block in self.blocks)

    def add_messages(self, *messages: BaseMessage) -> Self:
        return replace(self, window=(*self.window, *messages))

    def next_step(
        self,
        *,
        set_aside: tuple[int, int] | None = None,
        open_from: int | None = None,
        most_summaries: int | None = None,
        **conditions: Any,
    ) -> Step | None:
        """Return the step that is due, or None.

        `conditions` are those of plan_compaction. `set_aside`: the range of the first
        summary that waits because messages before it changed. `open_from`: the first
        message whose turn is not finished. `most_summaries`: tokens above which all
        summaries are merged.
        """
        return (
            self._plan_mending(set_aside, open_from, conditions["count_tokens"])
            or plan_merge(self.policy, self.blocks, most=most_summaries)
            or plan_compaction(self.policy, self.window, self.blocks, **conditions)
        )

    def _plan_mending(
        self,
        set_aside: tuple[int, int] | None,
        open_from: int | None,
        count_tokens: TokenCounter,
    ) -> Compaction | None:
        """Plan the compaction of the changed messages before a waiting summary.

        If none of them is left, the messages of that summary itself are compacted.
        """
        if not set_aside or not self.policy.enabled:
            return None
        for end in (set_aside[0] - 1, set_aside[1]):
            numbers = number_window(self.window, self.cutoff)
            messages = self.window[: bisect_right(numbers, end)]
            is_open = open_from is not None and open_from <= end
            if messages and not is_open:
                return Compaction(
                    trigger=TriggerHit("change", count_tokens(messages), 0),
                    messages=messages,
                    kept=self.window[len(messages) :],
                    previous=None,
                    level=0,
                    first_seq=self.cutoff + 1,
                    last_seq=end,
                    is_trim=self.policy.strategy == "window",
                )
        return None

    def apply_step(self, step: Step, text: str) -> Self:
        """Return the state after the step, with `text` as its summary.

        `text` is "" for a step that asks for none.
        """
        version = self.version + 1
        span = (step.first_seq, step.last_seq)
        block = SummaryBlock(version, step.level, *span, text, count_text(text))
        kept = [each for each in self.blocks if each not in step.replaces]
        return replace(
            self,
            blocks=tuple(sorted([*kept, block], key=lambda each: each.first_seq)),
            window=step.kept if isinstance(step, Compaction) else self.window,
            version=version,
        )


@dataclass(frozen=True, slots=True)
class Important:
    """Numbers of the messages that a policy's patterns match.

    `unread` are those for which no time was left, so that users can look at them.
    """

    seqs: tuple[int, ...] = ()
    unread: tuple[int, ...] = ()


def find_important(policy: Policy, step: Step) -> Important:
    """Find the messages of a step that match the policy's patterns.

    Messages of a merge are not searched: they were when they left the window. Patterns
    of a user can take long: call it in a thread, outside of a transaction.
    """
    found: list[int] = []
    unread: list[int] = []
    if policy.important and isinstance(step, Compaction):
        search = PatternSearch(policy.important)
        before = step.previous.last_seq if step.previous else step.first_seq - 1
        numbers = number_window(step.messages, before)
        for seq, message in zip(numbers, step.messages, strict=True):
            occurs = search.has_match(str(message.text))
            if occurs is None:
                unread.append(seq)
            elif occurs:
                found.append(seq)
    return Important(tuple(found), tuple(unread))
