"""A relayed reply, in the form that pages and checkpoints read replies."""

import asyncio
from typing import Self

from chatsite.contrib.endpoint.apis.reply_reader import ReplyReader
from chatsite.llm.streaming import HIGH_SURROGATE_AT_END, clean_text
from chatsite.turns.reply_streamer import ReplyStreamer


class FollowedReply:
    """A relayed reply as a ReplyStreamer reads it, instead of a ReplyStream."""

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
        """Wake the streamer, as the reader has read more, or everything."""
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
        """Return the text since the last call."""
        text = self._carry + self._reader.take_new()
        # The other half of a split character may be in the next chunk.
        cut = not self._is_over and bool(HIGH_SURROGATE_AT_END.search(text))
        text, self._carry = (text[:-1], text[-1]) if cut else (text, "")
        return clean_text(text)

    async def aclose(self) -> None:
        """Do nothing, as nothing is open."""


class FollowingStreamer(ReplyStreamer):
    """A streamer whose checkpoints save all text.

    The client has each word before the pages have it.
    """

    __slots__ = ()

    def take_unread(self) -> str:
        return self.stream.take_text()
