"""This project's engine: the reply first, the compaction in the time before the next
one."""

import asyncio
from datetime import datetime

from langchain_core.messages import BaseMessage, HumanMessage

from memory.engine import budget
from memory.engine.compaction import MemoryState
from memory.engine.compose import compose_context, role_of, time_of
from memory.engine.plan import Compaction, Step
from memory.engine.policy import Policy
from memory.engine.rules.keeper import RuleKeeper
from memory.engine.search import excerpts
from memory.engine.search.archive import MessageIndex
from memory.engine.search.ranking import Document
from memory.engine.summaries.summarizer import write_summary
from memory.engine.tokens import count_tokens

from ..models import SUMMARY_TOKENS, Write
from .base import CONTEXT_WINDOW, System


class Windowpane(System):
    """`recall_tokens`: room for notes found behind the window by the new message.
    `keeps_rules`: what the user states as a rule goes with every request."""

    def __init__(
        self,
        write: Write,
        *,
        preset: str = "layered",
        recall_tokens: int = 0,
        keeps_rules: bool = False,
    ) -> None:
        super().__init__(write)
        policy = Policy(preset=preset, max_summary_tokens=SUMMARY_TOKENS)
        self.state = MemoryState(policy)
        self.recall_tokens = recall_tokens
        self.keeps_rules = keeps_rules
        self.rules = RuleKeeper(budget.for_rules(CONTEXT_WINDOW))
        self.messages: list[BaseMessage] = []
        self.archive = MessageIndex()

    def take_turn(self, message: HumanMessage) -> None:
        context = compose_context(
            system_prompt="",
            blocks=self.state.blocks,
            rules=self.rules.blocks,
            window=self.state.window,
            recalled=self.recall(message.text),
            newest=message,
        )
        turn = message, self.chat.invoke(context.messages)
        if self.keeps_rules:
            self.rules.detect_rules(message)
        self.messages += turn
        self.state = self.state.add_messages(*turn)

    def rest(self, until: datetime | None) -> None:
        while step := self.state.next_step(
            count_tokens=count_tokens, overhead=self.state.summary_tokens, now=until
        ):
            asyncio.run(self._take(step))

    async def _take(self, step: Step) -> None:
        covered = self.messages[step.first_seq - 1 : step.last_seq]
        leaving = step.messages if isinstance(step, Compaction) else ()
        prefix = compose_context(
            system_prompt="",
            blocks=self.state.blocks,
            rules=self.rules.blocks,
            window=leaving,
        )
        made = await write_summary(
            self.summarizer.ainvoke,
            step,
            covered,
            prefix=prefix.messages,
            policy=self.state.policy,
        )
        self.state = self.state.apply_step(step, made.text)
        start, cutoff = self.archive.newest, self.state.cutoff
        self.archive.add_documents(
            Document.from_text(
                seq, role_of(each), each.text, each.additional_kwargs.get("created_at")
            )
            for seq, each in enumerate(self.messages[start:cutoff], start=start + 1)
        )

    def recall(self, question: str) -> list[BaseMessage]:
        if not self.recall_tokens:
            return []
        at = time_of(self.messages[-1]) if self.messages else None
        most = excerpts.find_breadth(question).hits
        chosen = excerpts.choose_excerpts(
            self.archive.search(question, limit=most, at=at),
            dict(enumerate(self.messages[: self.state.cutoff], start=1)),
            question,
            room=self.recall_tokens,
            count_tokens=count_tokens,
            later=self.state.window,
        )
        return [note.message for note in chosen]
