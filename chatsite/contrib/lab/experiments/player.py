"""The player of experiments, which records every step."""

import asyncio
from collections.abc import Awaitable, Callable
from math import ceil
from typing import Any

from langchain_core.messages import BaseMessage

from chatsite.turns import requests
from memory import context
from memory.engine.compaction import MemoryState
from memory.engine.plan import Step
from memory.engine.summaries.summarizer import Invoke, SummaryText
from memory.engine.tokens import count_text
from memory.evaluation.metrics import count_cacheable, shared_tokens
from memory.models import Conversation
from memory.versions import last_covered

from ..player import StoredPlayer
from .models import Experiment
from .replay_steps import PlayedTurn, ReplaySteps, Version, name_messages


class ExperimentPlayer(StoredPlayer):
    """Plays a conversation up to its last message at the start of the experiment.

    It continues where an earlier attempt stopped. `save` is called whenever money
    was spent.
    """

    def __init__(
        self,
        experiment: Experiment,
        invoke: Invoke,
        chunk_tokens: int,
        save: Callable[[], Awaitable[None]],
    ) -> None:
        conversation = Conversation.objects.get(pk=experiment.conversation_id)
        rows = context.visible_messages(conversation)
        super().__init__(
            conversation,
            rows.filter(seq__lte=experiment.last_seq),
            experiment.policy,
            requests.model_of(conversation),
            invoke,
            chunk_tokens,
        )
        self.save = save
        self._continue((experiment.result or {}).get("steps"))

    def _continue(self, saved: dict[str, Any] | None) -> None:
        self.steps = steps = ReplaySteps(name_messages(self.by_number))
        if saved and saved["of"] == steps.of:
            self.steps = steps = ReplaySteps.from_json(saved)
        active = steps.versions_at(len(steps.turns))
        start = last_covered(active)
        played = self.messages[: steps.place]
        self.state = MemoryState(
            self.policy,
            blocks=tuple(active),
            window=tuple(each for each in played if int(each.id or 0) > start),
            version=max((each.version for each in steps.versions), default=0),
        )
        self.failures, self.important = steps.failures, steps.pinned

    async def run(self) -> None:
        for message in self.messages[: self.steps.place]:
            await super()._ask(message)
        for place in range(self.steps.place, len(self.messages)):
            sent = self.summarizer.requests
            await self._step(place)
            self.steps.place, self.steps.failures = place + 1, self.failures
            if sent != self.summarizer.requests:
                await self.save()
            # Let the event loop serve the replies that this process streams.
            await asyncio.sleep(0)

    async def _ask(self, newest: BaseMessage) -> None:
        request, notes = await self.compose_request(newest)
        shared = shared_tokens(self.sent, request)
        turn = PlayedTurn(
            seq=int(newest.id or 0),
            tokens=self.count_tokens(request),
            cached=count_cacheable(ceil(shared * self.conversation.token_ratio)),
            recalled=[note.seq for note in notes],
        )
        self.steps.turns.append(turn)
        self.sent = request
        await super()._ask(newest)

    async def _commit(self, step: Step, made: SummaryText) -> None:
        await super()._commit(step, made)
        self.steps.pinned = self.important
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
