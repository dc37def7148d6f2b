"""Plays a conversation's messages through a policy, and records every step.

What is recalled comes from the site's own search; nothing is written here.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from math import ceil
from typing import Any

from channels.db import database_sync_to_async
from langchain_core.messages import BaseMessage

from chatsite.llm import providers
from chatsite.turns import requests
from memory import context
from memory.compaction.commit import MAX_PINNED
from memory.compaction.lease import MAX_FAILURES
from memory.engine.compaction import MemoryState, find_important
from memory.engine.compose import compose_context, fit_context, make_fence
from memory.engine.plan import Step
from memory.engine.policy import Policy
from memory.engine.search import excerpts
from memory.engine.search.excerpts import Note
from memory.engine.summaries.summarizer import Invoke, SummaryText
from memory.engine.tokens import TokenCounter, count_message, count_text
from memory.evaluation.metrics import count_cacheable, shared_tokens
from memory.evaluation.replay import Player, Recording
from memory.models import Conversation
from memory.search import recall

from .models import Experiment
from .steps import Steps, Turn, Version, find_covered_end, name_messages

Save = Callable[[], Awaitable[None]]


class ExperimentPlayer(Player):
    """Reads what it plays from the database when it is made: the messages that are not
    excluded, up to the last one when the experiment was started. Continues where an
    earlier attempt stopped; `save` is called whenever money was spent.
    """

    def __init__(
        self, experiment: Experiment, invoke: Invoke, chunk_tokens: int, save: Save
    ) -> None:
        conversation = Conversation.objects.get(pk=experiment.conversation_id)
        model = requests.model_of(conversation)
        super().__init__(
            Recording(id="", messages=[]),
            Policy.load(experiment.policy),
            invoke,
            context.find_system_prompt(conversation),
            providers.context_window(model),
        )
        rows = list(
            context.visible_messages(conversation).filter(seq__lte=experiment.last_seq)
        )
        self.messages = [row.to_langchain() for row in rows]
        self.by_number = {int(message.id or 0): message for message in self.messages}
        # When a person pinned them, by number.
        self.pins = {row.seq: row.pinned_at for row in rows if row.pinned_at}
        self.conversation, self.save = conversation, save
        # Tokens that a request may have.
        self.limit = requests.limit_of(model)
        self.chunk_tokens = chunk_tokens
        self.count_tokens = count_known(self.messages, conversation.token_ratio)
        self._continue((experiment.result or {}).get("steps"))

    def _continue(self, saved: dict[str, Any] | None) -> None:
        self.steps = steps = Steps(name_messages(self.by_number))
        if saved and saved["of"] == steps.of:
            self.steps = steps = Steps.load(saved)
        active = steps.versions_at(len(steps.turns))
        start = find_covered_end(active)
        played = self.messages[: steps.place]
        self.state = MemoryState(
            self.policy,
            blocks=tuple(active),
            window=tuple(each for each in played if int(each.id or 0) > start),
            version=max((each.version for each in steps.versions), default=0),
        )
        self.failures = steps.failures

    async def run(self) -> None:
        for place in range(self.steps.place, len(self.messages)):
            requests = self.summarizer.requests
            await self._step(place)
            self.steps.place, self.steps.failures = place + 1, self.failures
            if requests != self.summarizer.requests:
                await self.save()
            # Replies that are streamed by this process go first.
            await asyncio.sleep(0)

    async def _ask(self, newest: BaseMessage) -> None:
        found = await self._recall(newest)
        built = compose_context(
            system_prompt=self.system_prompt,
            blocks=self.state.blocks,
            pinned=self._pinned(newest),
            window=self.state.window,
            recalled=[note.message for note in found],
            newest=newest,
            fence=make_fence(self.policy.final_prompt),
        )
        request = fit_context(built, self.limit, self.count_tokens).messages
        shared = shared_tokens(self.sent, request)
        turn = Turn(
            seq=int(newest.id or 0),
            tokens=self.count_tokens(request),
            cached=count_cacheable(ceil(shared * self.conversation.token_ratio)),
            recalled=[note.seq for note in found],
        )
        self.steps.turns.append(turn)
        self.sent = request

    def _prefix(self, step: Step) -> list[BaseMessage]:
        """An experiment sends no request for a reply, so no provider has it cached."""
        return []

    def _pinned(self, newest: BaseMessage) -> list[BaseMessage]:
        """Those behind the window that a person or the policy had pinned by then."""
        now = newest.additional_kwargs["created_at"]
        by_hand = {seq for seq, at in self.pins.items() if at < now}
        found = sorted(by_hand.union(self.steps.pinned))
        return [self.by_number[seq] for seq in found if seq <= self.state.cutoff]

    async def _recall(self, newest: BaseMessage) -> list[Note]:
        """As the site would have: what matches behind this window."""
        room = self.policy.recall_tokens
        if not room or not self.state.cutoff:
            return []
        hits = await database_sync_to_async(recall.recall_messages)(
            self.conversation,
            newest.text,
            limit=excerpts.find_breadth(newest.text).hits,
            before_seq=self.state.cutoff + 1,
            at=newest.additional_kwargs["created_at"],
        )
        pinned = {int(message.id or 0) for message in self._pinned(newest)}
        known = {
            hit.seq: self.by_number[hit.seq]
            for hit in hits
            if hit.seq in self.by_number and hit.seq not in pinned
        }
        return excerpts.choose_excerpts(
            hits,
            known,
            newest.text,
            room=room,
            count_tokens=self.count_tokens,
            later=[*self.state.window, newest],
        )

    async def _compact(self, now: datetime | None) -> None:
        """Like the compaction job, which gives up after a few failures."""
        if self.failures < MAX_FAILURES:
            await super()._compact(now)

    async def _commit(self, step: Step, made: SummaryText) -> None:
        await super()._commit(step, made)
        self.steps.versions.append(
            Version(
                version=self.state.version,
                level=step.level,
                first_seq=step.first_seq,
                last_seq=step.last_seq,
                text=made.text,
                tokens=count_text(made.text),
                turn=len(self.steps.turns),
                replaces=[block.version for block in step.replaces],
            )
        )
        # Patterns of a person can take long; replies go on meanwhile.
        important = await asyncio.to_thread(find_important, self.policy, step)
        found = {*self.steps.pinned, *important.seqs}
        self.steps.pinned = sorted(found)[:MAX_PINNED]


def count_known(messages: Sequence[BaseMessage], ratio: float) -> TokenCounter:
    """The calibrated counter, with the sizes of these messages counted once."""
    # They live as long as the counter does, so no other object has one of these ids.
    known = {id(message): count_message(message) for message in messages}

    def count(asked: Sequence[BaseMessage]) -> int:
        sizes = (known.get(id(each)) or count_message(each) for each in asked)
        return ceil(sum(sizes) * ratio)

    return count
