"""A reply that goes by, as the pages and checkpoints of the chat read replies."""

import asyncio
from typing import Self

from chatsite.contrib.endpoint.wires.reply_reader import ReplyReader
from chatsite.llm.streaming import HIGH_SURROGATE_AT_END, clean_text
from chatsite.turns.reply_streamer import ReplyStreamer


class FollowedReply:
    """Takes the place of a ReplyStream for a ReplyStreamer."""

    def __init__(self, reader: ReplyReader) -> None:
        self._reader = reader
        self._came = asyncio.Event()
        self._is_over = False
        self._carry = ""

    @property
    def finish_reason(self) -> str | None:
        return "over" if self._is_over else self._reader.finish_reason

    @property
    def reasoning(self) -> str:
        return clean_text(self._reader.reasoning)

    def notify_new(self, *, is_over: bool = False) -> None:
        """The reader has read more, or all that there is."""
        self._is_over = self._is_over or is_over
        self._came.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        while True:
            if text := self.take_text():
                return text
            if self._is_over:
                raise StopAsyncIteration
            self._came.clear()
            await self._came.wait()

    def take_text(self) -> str:
        """All that has come since; "" = nothing."""
        text = self._carry + self._reader.take_new()
        # The other half of a split character may be in the next chunk.
        cut = not self._is_over and bool(HIGH_SURROGATE_AT_END.search(text))
        text, self._carry = (text[:-1], text[-1]) if cut else (text, "")
        return clean_text(text)

    async def aclose(self) -> None:
        """There is nothing to close here."""


class FollowingStreamer(ReplyStreamer):
    """Its client has each word before the pages have it: a checkpoint saves all."""

    __slots__ = ()

    def take_unread(self) -> str:
        return self.stream.take_text()
