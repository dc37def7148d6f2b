"""Plays trials in detached tasks of a server process, whichever takes them first."""

import asyncio
import logging
from collections.abc import Awaitable
from math import ceil
from time import monotonic
from typing import Any, TypeVar

from channels.db import database_sync_to_async
from django.conf import settings
from langchain_core.messages import AIMessage, BaseMessage

from chatsite.database import AWAY, insist, name_of
from chatsite.turns import limits, runner
from memory.compaction.compactor import InvokeError
from memory.engine.policy import Policy
from memory.engine.tokens import count_tokens
from memory.models import Conversation

from ..models import Trial
from . import comparing, material, store
from .player import TrialPlayer
from .steps import Steps
from .store import Claim, Hold

logger = logging.getLogger(__name__)

T = TypeVar("T")

RENEW_SECONDS = 1.0
# How long a trial that has ended waits for the database to take it.
FINISH_SECONDS = 60.0


class BudgetError(Exception):
    """The next request could cost more than there is left."""


class StopError(Exception):
    """Somebody wants it to stop."""


class LostError(Exception):
    """Another process has taken the trial over, or it was erased."""


async def sweep() -> None:
    """Play whatever waits, as far as the site has a place for it."""
    while claim := await database_sync_to_async(store.claim)():
        runner.spawn(run(claim))


JOB = runner.Job(sweep, store.release)


async def run(claim: Claim) -> None:
    """Play one trial to its end, however it ends."""
    try:
        rows = store.held(claim).select_related("conversation")
        trial = await database_sync_to_async(rows.first)()
        if trial is not None:
            await _Play(claim, trial).run()
    except (LostError, Conversation.DoesNotExist):
        logger.info("trial lost trial=%s", claim.trial_id)
    except AWAY as error:
        # It is taken over when its lease has ended, here or elsewhere.
        logger.warning("trial left trial=%s: %s", claim.trial_id, name_of(error))
    except Exception:
        logger.exception("trial crashed trial=%s", claim.trial_id)
        await _finish(claim, Trial.State.FAILED, "internal")


async def _finish(claim: Claim, *outcome: Any) -> None:
    until = monotonic() + FINISH_SECONDS
    await insist(store.finish, claim, *outcome, until=until)


class _Play:
    """One attempt at a trial: the player, its purse and its lease."""

    def __init__(self, claim: Claim, trial: Trial) -> None:
        self.claim, self.trial = claim, trial
        self.policy = Policy.load(trial.policy)
        # Where the account of the person who started it is gone, the owner's limits.
        self.payer = trial.user_id or trial.conversation.owner_id
        self.summariser = runner.summariser(trial.model, payer=self.payer)
        self.steps = Steps("")

    async def run(self) -> None:
        self.material = await database_sync_to_async(material.read)(self.trial)
        self.steps = self._begin()
        try:
            state, error = await self._under_lease(self._play())
        except StopError:
            state, error = Trial.State.STOPPED, "cancelled"
        result = await self._under_lease(self._compare(), heed=False)
        await _finish(self.claim, state, error, result, self.steps.place)
        logger.info("trial ended trial=%s state=%s", self.trial.pk, state)

    def _begin(self) -> Steps:
        """Where an earlier attempt stopped, if its messages are still the same."""
        saved = (self.trial.result or {}).get("steps")
        if saved and saved["of"] == self.material.name:
            return Steps.load(saved)
        return Steps(self.material.name)

    async def _play(self) -> tuple[str, str]:
        async def invoke(messages: list[BaseMessage], **options: Any) -> AIMessage:
            return await self._pay(messages, **options)

        invoke.takes_schema = True
        player = TrialPlayer(
            self.material,
            self.policy,
            invoke,
            self.summariser.chunk_tokens,
            self.steps,
            self._save,
        )
        try:
            await player.run()
        except BudgetError:
            return Trial.State.STOPPED, "budget"
        except InvokeError as error:
            return Trial.State.FAILED, error.code
        return Trial.State.DONE, ""

    async def _pay(self, messages: list[BaseMessage], **options: Any) -> AIMessage:
        """Send one request, if the budget has room for the most it can take and the
        person who started the trial may spend it."""
        async with self.summariser.door():
            return await self._send(messages, **options)

    async def _send(self, messages: list[BaseMessage], **options: Any) -> AIMessage:
        ratio = max(1.0, self.material.conversation.token_ratio)
        asked = ceil(count_tokens(messages) * ratio)
        most = asked + self.policy.max_summary_tokens
        if not await database_sync_to_async(store.reserve)(self.claim, most):
            still = await database_sync_to_async(store.held(self.claim).exists)()
            raise BudgetError if still else LostError
        read = written = 0
        try:
            reply = await self.summariser.invoke(messages, **options)
            usage = reply.usage_metadata or {}
            read = usage.get("input_tokens") or count_tokens(messages)
            written = usage.get("output_tokens") or count_tokens([reply])
        except InvokeError:
            # What never answered costs nothing; cut off in the middle it may have.
            await database_sync_to_async(store.settle)(self.claim, most, 0, 0)
            raise
        await database_sync_to_async(store.settle)(self.claim, most, read, written)
        await database_sync_to_async(limits.charge_tokens)(self.payer, read + written)
        return reply

    async def _save(self) -> None:
        if not await database_sync_to_async(store.save)(
            self.claim, self.steps.dump(), self.steps.place
        ):
            raise LostError

    async def _compare(self) -> dict[str, Any]:
        return await comparing.compare(self.trial.pk, self.material, self.steps)

    async def _under_lease(self, work: Awaitable[T], *, heed: bool = True) -> T:
        """Do it while the lease is renewed. Raises StopError or LostError."""
        task = asyncio.ensure_future(work)
        seconds = min(RENEW_SECONDS, settings.TURN_LEASE_SECONDS / 5)
        try:
            while not (await asyncio.wait({task}, timeout=seconds))[0]:
                await self._renew(heed)
            return task.result()
        finally:
            task.cancel()
            # What it was doing is over before the trial is closed.
            await asyncio.wait({task})

    async def _renew(self, heed: bool) -> None:
        try:
            hold = await database_sync_to_async(store.renew)(
                self.claim, self.steps.place, heed=heed
            )
        except AWAY as error:
            logger.warning("trial not renewed: %s", name_of(error))
            return
        if hold is Hold.LOST:
            raise LostError
        if hold is Hold.CANCELLED:
            raise StopError
