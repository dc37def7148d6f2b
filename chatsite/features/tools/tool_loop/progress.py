"""The progress of a running call.

A report of its tool is shown on the pages, and extends the time limit of the call.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import monotonic
from typing import Self

from chatsite.features.tools.context import CallProgress, listener

# Between two events of one call.
PAUSE_SECONDS = 1.0


class Reports:
    """A context that receives the reports of its call, and shows the newest.

    `idle`: seconds that the call may take without a report; `most`: in all.
    """

    def __init__(
        self, tell: Callable[[CallProgress], Awaitable[None]], idle: float, most: float
    ) -> None:
        self._tell, self._idle, self._most = tell, idle, most
        self._began = self._heard = monotonic()
        self._newest: CallProgress | None = None
        self._telling: asyncio.Task[None] | None = None
        self._is_over = False

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._token = listener.set(self._report)
        return self

    async def __aexit__(self, *_: object) -> None:
        listener.reset(self._token)
        self._is_over, self._newest = True, None
        if self._telling:
            self._telling.cancel()
            await asyncio.gather(self._telling, return_exceptions=True)

    def count_seconds_left(self) -> float:
        """Seconds that the call has now."""
        return min(self._heard + self._idle, self._began + self._most) - monotonic()

    @property
    def limit(self) -> float:
        """The limit that it has reached, in seconds."""
        is_total = monotonic() >= self._began + self._most
        return self._most if is_total else self._idle

    def _report(self, progress: CallProgress) -> None:
        """Receive a report from any thread."""
        # A tool that was left alone can outlive the loop.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._take, progress)

    def _take(self, progress: CallProgress) -> None:
        if self._is_over:
            return
        self._heard, self._newest = monotonic(), progress
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self._tell_newest())

    async def _tell_newest(self) -> None:
        while self._newest:
            newest, self._newest = self._newest, None
            await self._tell(newest)
            await asyncio.sleep(PAUSE_SECONDS)
