"""Plays experiments in detached tasks of a server process, whichever takes them
first."""

import logging
from collections.abc import Awaitable
from math import ceil
from time import monotonic
from typing import Any, TypeVar

from channels.db import database_sync_to_async
from django.conf import settings
from langchain_core.messages import AIMessage, BaseMessage

from chatsite.database import TRANSIENT_DB_ERRORS, name_of, retry
from chatsite.turns import limits, runner
from memory.compaction.compactor import InvokeError
from memory.engine.tokens import count_tokens
from memory.leases import Claim, LeaseStatus, LostError, work_under_lease
from memory.models import Conversation

from . import comparing, store
from .models import EXPERIMENT_LEASE, Experiment
from .player import ExperimentPlayer

logger = logging.getLogger(__name__)

T = TypeVar("T")

RENEW_SECONDS = 1.0
# How long an experiment that has ended waits for the database to take it.
FINISH_SECONDS = 60.0


class StopError(Exception):
    """It has to stop: "cancelled", or "budget" if the next request could cost more than
    there is left."""


async def sweep() -> None:
    """Play whatever waits, as far as the site has a place for it."""
    while claim := await database_sync_to_async(store.claim)():
        runner.spawn_task(run(claim))


JOB = runner.Job(sweep, store.release, store.due)


async def run(claim: Claim) -> None:
    """Play one experiment to its end, however it ends."""
    try:
        rows = EXPERIMENT_LEASE.held(claim).select_related("conversation")
        experiment = await database_sync_to_async(rows.first)()
        if experiment is not None:
            await _Play(claim, experiment).run()
    except (LostError, Conversation.DoesNotExist):
        logger.info("experiment lost experiment=%s", claim.row_id)
    except TRANSIENT_DB_ERRORS as error:
        # It is taken over when its lease has ended, here or elsewhere.
        logger.warning(
            "experiment left experiment=%s: %s", claim.row_id, name_of(error)
        )
    except Exception:
        logger.exception("experiment crashed experiment=%s", claim.row_id)
        await _finish(claim, Experiment.State.FAILED, "internal")


async def _finish(claim: Claim, *outcome: Any) -> None:
    until = monotonic() + FINISH_SECONDS
    await retry(store.finish, claim, *outcome, until=until)


class _Play:
    """One attempt at an experiment: the player, its budget and its lease."""

    # The summariser is given a schema where it takes one: its caller looks here.
    takes_schema = True

    def __init__(self, claim: Claim, experiment: Experiment) -> None:
        self.claim, self.experiment = claim, experiment
        # If the account that started it is gone, the owner's limits count.
        self.payer = experiment.user_id or experiment.conversation.owner_id
        self.summariser = runner.make_summariser(experiment.model, payer=self.payer)

    async def run(self) -> None:
        chunk_tokens = self.summariser.chunk_tokens
        self.player = await database_sync_to_async(ExperimentPlayer)(
            self.experiment, self, chunk_tokens, self._save
        )
        state, error = Experiment.State.DONE, ""
        try:
            await self._under_lease(self.player.run())
        except StopError as stop:
            state, error = Experiment.State.STOPPED, str(stop)
        except InvokeError as failure:
            state, error = Experiment.State.FAILED, failure.code
        compared = comparing.compare_memories(self.experiment.pk, self.player)
        result = await self._under_lease(compared, heed=False)
        await _finish(self.claim, state, error, result, self.player.steps.place)
        logger.info(
            "experiment ended experiment=%s state=%s", self.experiment.pk, state
        )

    async def __call__(self, messages: list[BaseMessage], **options: Any) -> AIMessage:
        """The summariser, as the player asks it."""
        async with self.summariser.door():
            return await self._pay_for(messages, **options)

    async def _pay_for(self, messages: list[BaseMessage], **options: Any) -> AIMessage:
        """Send one request, if the budget has room for the most it can take."""
        ratio = max(1.0, self.player.conversation.token_ratio)
        asked = ceil(count_tokens(messages) * ratio)
        most = asked + self.player.policy.max_summary_tokens
        if not await database_sync_to_async(store.reserve)(self.claim, most):
            still = await database_sync_to_async(
                EXPERIMENT_LEASE.held(self.claim).exists
            )()
            raise StopError("budget") if still else LostError
        try:
            reply = await self.summariser.invoke(messages, **options)
        except InvokeError:
            # What never answered costs nothing; cut off in the middle it may have.
            await database_sync_to_async(store.settle)(self.claim, most, 0, 0)
            raise
        usage = reply.usage_metadata or {}
        read = usage.get("input_tokens") or count_tokens(messages)
        written = usage.get("output_tokens") or count_tokens([reply])
        await database_sync_to_async(store.settle)(self.claim, most, read, written)
        used = limits.Used(self.experiment.model, read, written)
        await database_sync_to_async(limits.charge_use)(self.payer, used)
        return reply

    async def _save(self) -> None:
        steps = self.player.steps
        save = database_sync_to_async(store.save)
        if not await save(self.claim, steps.dump(), steps.place):
            raise LostError

    async def _under_lease(self, work: Awaitable[T], *, heed: bool = True) -> T:
        """Do it while the lease is renewed. Raises StopError or LostError."""

        async def renew() -> None:
            status = await database_sync_to_async(store.renew)(
                self.claim, self.player.steps.place, heed=heed
            )
            if status is LeaseStatus.LOST:
                raise LostError
            if status is LeaseStatus.CANCELLED:
                raise StopError("cancelled")

        seconds = min(RENEW_SECONDS, settings.TURN_LEASE_SECONDS / 5)
        return await work_under_lease(work, renew, seconds)
