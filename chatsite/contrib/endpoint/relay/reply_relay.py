"""Relaying an answer chunk by chunk, while the page and transcript follow it.

It is relayed no faster than the client reads it.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from chatsite import metrics
from chatsite.contrib.endpoint.apis.errors import ApiError
from chatsite.contrib.endpoint.apis.reply_reader import ReplyReader
from chatsite.contrib.endpoint.store.request_end import finish_request
from chatsite.contrib.endpoint.store.request_store import StoredRequest
from chatsite.llm.streaming import clean_text
from chatsite.protocol import events
from chatsite.turns import runner
from chatsite.turns.lifecycle import TurnResult
from chatsite.turns.models import Turn
from chatsite.turns.runner import FINISH_SECONDS
from memory.database import retry
from memory.engine import replies
from memory.leases import LeaseStatus

from .client_connection import Connection, GoneError
from .provider_answer import CutError, ProviderAnswer, fetch_answer
from .reply_follower import FollowedReply, FollowingStreamer

State = Turn.State
# The client hung up or stopped reading.
CLIENT_GONE = "client_gone"
# The provider summarised the conversation, and did not answer.
COMPACTED = "compacted"
# The error code of a turn, by the code that the client received.
REFUSALS = {
    "upstream_key": "auth",
    "bad_response": "bad_response",
    "timeout": "timeout",
}
# How a turn ended, by the state of its lease: a user stopped it on the page; it could
# not be renewed in time, or was erased.
ENDS = {
    LeaseStatus.CANCELLED: (State.STOPPED, ""),
    LeaseStatus.LOST: (State.INTERRUPTED, "interrupted"),
}
# Returns a shorter request, after one that was too long; None: there is none.
SendLess = Callable[
    [StoredRequest, TurnResult], Coroutine[Any, Any, StoredRequest | None]
]
Headers = Mapping[str, str]
# Returns the site's own headers of an answer.
Describe = Callable[[StoredRequest], Headers]


class ReplyRelay:
    """One request, from when it is stored until its answer is."""

    def __init__(
        self,
        key_id: int,
        stored: StoredRequest,
        client: Connection,
        send_less: SendLess | None,
    ) -> None:
        self.key_id, self.stored, self.client = key_id, stored, client
        self.request, self.send_less = stored.sent.request, send_less
        self.reader: ReplyReader = self.request.api.reader("")
        self.followed = FollowedReply(self.reader)
        self.following: asyncio.Task[BaseException | None] | None = None
        self.is_ended = False
        self.loop = asyncio.get_running_loop()
        self.started = self.loop.time()
        self.first_at: float | None = None

    async def run(self, headers: Headers, describe: Describe) -> None:
        """Relay the answer.

        Raise ApiError where nothing was answered yet.
        """
        state, error = State.FAILED, "internal"
        try:
            answer = await self._fetch(headers)
            if self.send_less and answer.is_too_long and self.stored.sent.is_bound:
                answer = await self._send_less(answer, headers)
            own = describe(self.stored)
            if answer.is_error:
                error = answer.code
                await self.client.pass_on(answer, own)
            else:
                state, error = await self._follow(answer, own)
        except ApiError as refusal:
            error = REFUSALS.get(refusal.code, "unavailable")
            raise
        except GoneError:
            state, error = State.STOPPED, CLIENT_GONE
        except asyncio.CancelledError:
            state, error = State.INTERRUPTED, "interrupted"
            raise
        finally:
            await asyncio.shield(self._end(state, error))

    async def _send_less(
        self, answer: ProviderAnswer, headers: Headers
    ) -> ProviderAnswer:
        """Return the answer to a shorter request, or this one if there is none."""
        result = self._make_result(State.FAILED, "context_length")
        less = await self.client.run_unless_gone(self.send_less(self.stored, result))
        if less is None:
            return answer
        self.stored, self.request = less, less.sent.request
        return await self._fetch(headers)

    async def _fetch(self, headers: Headers) -> ProviderAnswer:
        fetched = fetch_answer(self.request, headers, self.stored.earlier)
        begun = FollowingStreamer.work_under_claim(self.stored.claim, fetched)
        answer, claim = await self.client.run_unless_gone(begun)
        self.stored = replace(self.stored, claim=claim)
        return answer

    async def _follow(self, answer: ProviderAnswer, own: Headers) -> tuple[str, str]:
        """Relay a reply and return its state and error code."""
        encoding = answer.headers.get("content-encoding", "")
        self.reader = self.request.api.reader(answer.kind, encoding)
        self.followed = FollowedReply(self.reader)
        claim = self.stored.claim
        async with events.stop_hints(claim.row_id) as stop:
            streamer = FollowingStreamer(claim, self.followed, stop)
            self.following = asyncio.create_task(streamer.run())
            passing = asyncio.create_task(self._pass_on(answer, own))
            try:
                await self.client.wait_for_any({self.following, passing})
                if streamer.hold is not LeaseStatus.KEPT:
                    self.client.cut_off()
                    return ENDS[streamer.hold]
                return await passing
            finally:
                passing.cancel()
                self.following.cancel()
                await asyncio.gather(passing, self.following, return_exceptions=True)

    async def _pass_on(self, answer: ProviderAnswer, own: Headers) -> tuple[str, str]:
        await self.client.start_response(answer.status, {**answer.headers, **own})
        # A client that has the last bytes may at once send a request that continues
        # this reply, so the reply is stored first.
        held = b""
        try:
            async with aclosing(answer.chunks) as chunks:
                async for chunk in chunks:
                    self._read(chunk)
                    if self.reader.is_done:
                        await self._end(*self._judge())
                    if self.request.is_stream:
                        await self.client.write_chunk(chunk)
                        continue
                    if held:
                        await self.client.write_chunk(held)
                    held = chunk
        except CutError as cut:
            if held:
                await self.client.write_chunk(held)
            self.client.cut_off()
            return State.TRUNCATED, cut.code
        self.reader.finish_body()
        ended = self._judge()
        await self._end(*ended)
        if held:
            await self.client.write_chunk(held)
        await self.client.finish_response()
        return ended

    def _read(self, chunk: bytes) -> None:
        self.reader.feed(chunk)
        if self.first_at is None and self.reader.is_begun:
            self.first_at = self.loop.time()
        self.followed.notify_new()

    def _judge(self) -> tuple[str, str]:
        reader = self.reader
        if reader.is_error:
            return State.FAILED, "unavailable"
        if reader.is_garbled and not reader.is_begun:
            return State.FAILED, "bad_response"
        is_empty = not (reader.text or reader.calls)
        if is_empty and reader.report.made and reader.finish_reason:
            # Only the provider's own summary: the client goes on from there.
            return State.STOPPED, COMPACTED
        why = replies.why_cut_off(reader.finish_reason)
        if why == "content_filter":
            return State.FAILED, why
        if why:
            return State.TRUNCATED, why
        return (State.FAILED, "bad_response") if is_empty else (State.DONE, "")

    async def _end(self, state: str, error: str) -> None:
        """End the turn with what came, whatever happened."""
        if self.is_ended:
            return
        self.is_ended = True
        if self.following:
            # It may be waiting until its next frame is due.
            self.following.cancel()
            await asyncio.wait({self.following})
        stored, result = self.stored, self._make_result(state, error)
        turn = await retry(
            finish_request,
            self.key_id,
            stored,
            result,
            self.reader,
            until=self.loop.time() + FINISH_SECONDS,
        )
        metrics.note_reply(result)
        if turn:
            metrics.TURNS_ENDED.labels(turn.state).inc()
            for event in events.make_end_events(turn):
                await events.publish_event(stored.conversation.pk, event)
            if stored.sent.is_bound:
                runner.start_compaction(stored.conversation.pk)

    def _make_result(self, state: str, error: str) -> TurnResult:
        reader, first = self.reader, self.first_at
        text, reasoning = split_answer(reader)
        return TurnResult(
            state,
            text,
            reasoning=reasoning,
            error=error,
            tokens_input=reader.tokens_input,
            tokens_cached=reader.tokens_cached,
            tokens_output=reader.tokens_output,
            kept=reader.report.list_kept(self.request.api.long_factor),
            first_token_ms=_ms(first - self.started) if first else None,
            total_ms=_ms(self.loop.time() - self.started),
        )


def split_answer(reader: ReplyReader) -> tuple[str, str]:
    """Return the answer and its reasoning, as the transcript stores them."""
    splitter = replies.ReasoningSplitter()
    text = splitter.feed(clean_text(reader.text)) + splitter.flush_rest()
    reasoning = clean_text(reader.reasoning) + splitter.reasoning
    reasoning, text = replies.split_rest(reasoning, text)
    return text, reasoning


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
