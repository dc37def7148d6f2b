"""The streamer of one reply: to the pages in frames, to the database in checkpoints.

Neither of them may hold up the other, nor the stream.
"""

import asyncio
import logging
from collections.abc import Awaitable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import TypeVar

from django.conf import settings

from chatsite.llm import streaming
from chatsite.protocol import events, layer
from memory.database import TRANSIENT_DB_ERRORS, name_of
from memory.engine import replies
from memory.leases import work_under_lease

from . import checkpoints, lifecycle

logger = logging.getLogger(__name__)

T = TypeVar("T")

# The stream is left alone between two frames: what comes meanwhile is read at once. All
# replies send their frames at the same moments of the machine's clock, so that fifty
# wake the process once and not fifty times.
FRAME_SECONDS = 0.09
# A timer of uvloop counts in milliseconds and may end one too early. Without this, what
# has come would wait for the next word, and a checkpoint be asked for in a loop.
EARLY_SECONDS = 0.002
# With a provider so fast that one piece has as many, reading has no pauses. What a
# connection gives at once (16 kB, some 50 tokens) has more in any script.
FULL_CHARS = 60


@dataclass(slots=True)
class ReplyStreamer:
    """The reader of a stream, which sends its text in frames and saves it."""

    claim: lifecycle.TurnClaim
    stream: streaming.ReplyStream
    stop: asyncio.Event
    text: str = ""  # the answer, without the reasoning before it
    reasoning: str = ""  # known once run() has returned
    base: int = 0  # characters that are saved
    sent: int = 0  # characters that were in a frame
    hold: lifecycle.LeaseStatus = lifecycle.LeaseStatus.KEPT
    save_at: float = field(default_factory=lambda: checkpoints.next_at(is_first=True))
    _splitter: replies.ReasoningSplitter = field(
        default_factory=replies.ReasoningSplitter
    )
    _renewed_at: float = 0.0
    _frame: asyncio.Task[None] | None = None
    _save: asyncio.Task[None] | None = None

    @staticmethod
    async def work_under_claim(
        claim: lifecycle.TurnClaim, work: Awaitable[T]
    ) -> tuple[T, lifecycle.TurnClaim]:
        """Return the result of work before the stream, and the claim as it was renewed.

        A provider may take longer than a lease until its answer begins.
        """

        async def renew() -> None:
            nonlocal claim
            started = monotonic()
            status = await checkpoints.save_checkpoint(claim, "")
            if status is lifecycle.LeaseStatus.KEPT:
                claim = replace(claim, renewed_at=started)

        result = await work_under_lease(work, renew, checkpoints.CHECKPOINT_SECONDS)
        return result, claim

    async def run(self) -> BaseException | None:
        """Pass the stream on until it ends, or `hold` is no longer KEPT.

        Returns the error of the stream, if any.
        """
        self._renewed_at = self.claim.renewed_at
        async with aclosing(self.stream):
            reader = asyncio.create_task(self._read())
            try:
                self.hold = await self._pump(reader)
            finally:
                reader.cancel()
                await asyncio.gather(reader, return_exceptions=True)
                await self._settle()
        self._separate()
        return None if reader.cancelled() else reader.exception()

    async def _read(self) -> None:
        frame_at = 0.0
        async for piece in self.stream:
            self.text += self._splitter.feed(piece)
            now = monotonic()
            if now >= frame_at - EARLY_SECONDS:
                self._send_frame()
                frames = (now + EARLY_SECONDS) // FRAME_SECONDS
                frame_at = (frames + 1) * FRAME_SECONDS
            if self.stream.finish_reason is None and len(piece) < FULL_CHARS:
                await asyncio.sleep(frame_at - now)

    def _separate(self) -> None:
        """Take the rest of the text, and separate reasoning that only its end shows."""
        text = self.text + self._splitter.flush_rest()
        known = self.stream.reasoning + self._splitter.reasoning
        self.reasoning, self.text = replies.split_rest(known, text)

    async def _pump(self, reader: asyncio.Task[None]) -> lifecycle.LeaseStatus:
        stopped = asyncio.create_task(self.stop.wait())
        try:
            while not reader.done():
                awaited, left = {reader, stopped}, checkpoints.CHECKPOINT_SECONDS
                if is_busy(self._save):
                    awaited.add(self._save)
                else:
                    # It can be due now, and was not yet when that was asked.
                    left = max(self.save_at - monotonic(), 0) + EARLY_SECONDS
                await asyncio.wait(
                    awaited, timeout=left, return_when=asyncio.FIRST_COMPLETED
                )
                if stopped.done():
                    return lifecycle.LeaseStatus.CANCELLED
                if self._is_lease_over():
                    logger.warning("turn not renewed turn=%s", self.claim.row_id)
                    return lifecycle.LeaseStatus.LOST
                self._checkpoint()
                if self.hold is not lifecycle.LeaseStatus.KEPT:
                    return self.hold
        finally:
            stopped.cancel()
        return lifecycle.LeaseStatus.KEPT

    def _is_lease_over(self) -> bool:
        """Return whether the lease has ended by this machine's clock; True in doubt."""
        return monotonic() - self._renewed_at >= settings.TURN_LEASE_SECONDS

    def _send_frame(self) -> None:
        # After a long sleep the turn may be another process's.
        is_silent = len(self.text) == self.sent or self._is_lease_over()
        if is_silent or is_busy(self._frame):
            return
        self.sent = len(self.text)
        frame = self.make_frame(self.text[self.base :])
        conversation_id = self.claim.conversation_id
        events.deliver_event(conversation_id, frame)
        # Most replies are read in the process that writes them.
        if layer.may_be_heard(events.group_of(conversation_id)):
            self._frame = asyncio.create_task(_offer(conversation_id, frame))

    def make_frame(self, tail: str) -> events.Event:
        return events.Frame(self.claim.row_id, self.claim.attempt, self.base, tail)

    def take_unread(self) -> str:
        """Return what other receivers have of the stream while reading it pauses."""
        return ""

    async def save(self, text: str) -> lifecycle.LeaseStatus:
        return await checkpoints.save_checkpoint(self.claim, text)

    def _checkpoint(self) -> None:
        if is_busy(self._save):
            return
        if self._save:
            self._save.result()
        if monotonic() >= self.save_at:
            self.save_at = checkpoints.next_at()
            self.text += self._splitter.feed(self.take_unread())
            self._send_frame()
            # Only what was in a frame: `base` is never beyond what the pages know.
            work = self._write(self.text[: self.sent])
            self._save = asyncio.create_task(work)

    async def _write(self, text: str) -> None:
        """Save a checkpoint; one that fails is tried again when the next one is due."""
        started = monotonic()
        try:
            hold = await self.save(text)
        except TRANSIENT_DB_ERRORS as error:
            logger.warning(
                "checkpoint failed turn=%s error=%s", self.claim.row_id, name_of(error)
            )
            return
        self.hold, self.base, self._renewed_at = hold, len(text), started

    async def _settle(self) -> None:
        """Let the last frame out before the end is published.

        A checkpoint under way is left to itself: its thread cannot be stopped, and its
        fence guards it.
        """
        if self._save:
            self._save.cancel()
            self._save.add_done_callback(lambda it: it.cancelled() or it.exception())
        if is_busy(self._frame):
            await asyncio.wait({self._frame})


async def _offer(conversation_id: int, frame: events.Event) -> None:
    if await events.offer_event(conversation_id, frame) == 0:
        layer.note_unheard(events.group_of(conversation_id))


def is_busy(task: asyncio.Task[None] | None) -> bool:
    return task is not None and not task.done()
