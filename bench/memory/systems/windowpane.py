"""This project's engine: the reply first, the compaction in the time before the next
one."""

import asyncio
from collections.abc import Sequence
from datetime import datetime

from langchain_core.messages import BaseMessage, HumanMessage

from memory.engine import excerpts
from memory.engine.compose import SummaryBlock, compose
from memory.engine.plan import Compaction, Merge, plan_compaction, plan_merge
from memory.engine.policy import Policy
from memory.engine.ranking import Document, Index
from memory.engine.summaries.summarizer import merge, summarize
from memory.engine.tokens import count_text, count_tokens

from ..models import SUMMARY_TOKENS, Write
from .base import System


class Windowpane(System):
    """`recall_tokens`: room for notes found behind the window by the new message."""

    def __init__(
        self, write: Write, *, preset: str = "layered", recall_tokens: int = 0
    ) -> None:
        super().__init__(write)
        self.policy = Policy(preset=preset, max_summary_tokens=SUMMARY_TOKENS)
        self.recall_tokens = recall_tokens
        self.messages: list[BaseMessage] = []
        self.blocks: list[SummaryBlock] = []
        self.version = self.cutoff = 0
        self.archive = Index([])

    def take_turn(self, message: HumanMessage) -> None:
        context = compose(
            system_prompt="",
            blocks=self.blocks,
            window=self.messages[self.cutoff :],
            recalled=self._recall(message.text),
            newest=message,
        )
        self.messages += [message, self.chat.invoke(context.messages)]

    def rest(self, until: datetime | None) -> None:
        due = plan_compaction(
            self.policy,
            self.messages[self.cutoff :],
            self.blocks,
            count_tokens=count_tokens,
            overhead=sum(block.tokens for block in self.blocks),
            now=until,
        )
        if due:
            asyncio.run(self._compact(due))

    async def _compact(self, due: Compaction) -> None:
        made = await summarize(
            self.summarizer.ainvoke,
            due.messages,
            previous=due.previous.text if due.previous else "",
            policy=self.policy,
        )
        self._replace([due.previous] if due.previous else [], due, made.text)
        self.cutoff = due.last_seq
        self.archive = self._index()
        while merging := plan_merge(self.policy, self.blocks):
            covered = self.messages[merging.first_seq - 1 : merging.last_seq]
            made = await merge(
                self.summarizer.ainvoke, merging.blocks, covered, policy=self.policy
            )
            self._replace(merging.blocks, merging, made.text)

    def _replace(
        self, replaced: Sequence[SummaryBlock], due: Compaction | Merge, text: str
    ) -> None:
        self.version += 1
        block = SummaryBlock(
            self.version, due.level, due.first_seq, due.last_seq, text, count_text(text)
        )
        kept = [each for each in self.blocks if each not in replaced]
        self.blocks = sorted([*kept, block], key=lambda each: each.first_seq)

    def _index(self) -> Index:
        behind = self.messages[: self.cutoff] if self.recall_tokens else []
        return Index(
            [Document(seq, m.type, m.text) for seq, m in enumerate(behind, start=1)]
        )

    def _recall(self, text: str) -> list[BaseMessage]:
        if not self.recall_tokens:
            return []
        chosen = excerpts.choose(
            self.archive.search(text),
            dict(enumerate(self.messages[: self.cutoff], start=1)),
            text,
            room=self.recall_tokens,
            count_tokens=count_tokens,
        )
        return [note.message for note in chosen]
