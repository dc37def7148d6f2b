"""Playing of experiments in detached tasks of any server process."""

import logging
from functools import partial
from math import ceil
from typing import Any

from channels.db import database_sync_to_async
from langchain_core.messages import AIMessage, BaseMessage

from chatsite.jobs.worker import start_waiting
from chatsite.turns import runner
from memory.compaction.compactor import InvokeError
from memory.engine.tokens import count_tokens
from memory.leases import Claim, LostError
from memory.models import Conversation

from ..billing import send_paid
from . import comparing, store
from .models import EXPERIMENT_LEASE, Experiment
from .player import ExperimentPlayer

logger = logging.getLogger(__name__)


class StopError(Exception):
    """The experiment has to stop.

    The reason is "cancelled", or "budget" if the next request could cost more than
    the rest of the budget.
    """


async def sweep() -> None:
    """Play waiting experiments while the site has free slots."""
    await database_sync_to_async(store.EXPERIMENTS.end_left)()
    await start_waiting(store.claim, run)


async def run(claim: Claim) -> None:
    """Play one experiment until it ends in any state."""
    crashed = claim, Experiment.State.FAILED, "internal"
    finish = store.EXPERIMENTS.finish_row
    found = await runner.work_to_end("experiment", claim, _play(claim), finish, crashed)
    if found:
        _claim, state, *_rest = found[0]
        logger.info("experiment ended experiment=%s state=%s", claim.row_id, state)


async def _play(claim: Claim) -> tuple[Any, ...] | None:
    rows = EXPERIMENT_LEASE.filter_held(claim).select_related("conversation")
    experiment = await database_sync_to_async(rows.first)()
    try:
        return experiment and await _Play(claim, experiment).run()
    except Conversation.DoesNotExist:
        return None


class _Play:
    """One attempt at an experiment: the player, its budget and its lease."""

    # The caller of the summariser checks this before it passes a schema.
    takes_schema = True

    def __init__(self, claim: Claim, experiment: Experiment) -> None:
        self.claim, self.experiment = claim, experiment
        # If the account that started it is gone, the owner's limits count.
        self.payer = experiment.user_id or experiment.conversation.owner_id
        self.summariser = runner.make_summariser(experiment.model, payer=self.payer)

    async def run(self) -> tuple[Any, ...]:
        """Return the final state, the error and the result. Raises LostError."""
        chunk_tokens = self.summariser.chunk_tokens
        self.player = await database_sync_to_async(ExperimentPlayer)(
            self.experiment, self, chunk_tokens, self._save
        )
        state, error = Experiment.State.DONE, ""
        hold = partial(
            store.EXPERIMENTS.work_under_claim, self.claim, note=self._note_progress
        )
        try:
            await hold(self.player.run(), self._stop)
        except StopError as stop:
            state, error = Experiment.State.STOPPED, str(stop)
        except InvokeError as failure:
            state, error = Experiment.State.FAILED, failure.code
        # Also after a cancellation: the results until then are shown.
        result = await hold(comparing.compare_memories(self.experiment.pk, self.player))
        values = {"result": result, **self._note_progress()}
        return self.claim, state, error, values

    def _note_progress(self) -> dict[str, Any]:
        return {"done_messages": self.player.steps.place}

    def _stop(self) -> None:
        raise StopError("cancelled")

    async def __call__(self, messages: list[BaseMessage], **options: Any) -> AIMessage:
        """Ask the summariser; called by the player."""
        async with self.summariser.rate_limit():
            return await self._pay_for(messages, **options)

    async def _pay_for(self, messages: list[BaseMessage], **options: Any) -> AIMessage:
        """Send one request, if the budget has room for the most it can cost.

        Raises StopError if it has none, and LostError if the lease is lost.
        """
        ratio = max(1.0, self.player.conversation.token_ratio)
        asked = ceil(count_tokens(messages) * ratio)
        most = asked + self.player.policy.max_summary_tokens
        if not await database_sync_to_async(store.reserve)(self.claim, most):
            still = await database_sync_to_async(
                EXPERIMENT_LEASE.filter_held(self.claim).exists
            )()
            raise StopError("budget") if still else LostError
        ask, model = self.summariser.invoke, self.experiment.model
        try:
            reply, used = await send_paid(self.payer, model, ask, messages, **options)
        except InvokeError:
            # A request without an answer is counted as free, though a request cut off
            # may have cost something.
            await database_sync_to_async(store.settle)(self.claim, most, 0, 0)
            raise
        settle = database_sync_to_async(store.settle)
        await settle(self.claim, most, used.read, used.written)
        return reply

    async def _save(self) -> None:
        steps = self.player.steps
        save = database_sync_to_async(store.save)
        if not await save(self.claim, steps.to_json(), steps.place):
            raise LostError
