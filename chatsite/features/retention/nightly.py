"""The nightly run beside all other work of a process.

While there are rows to delete it runs a batch at each interval, else it looks every few
minutes.
"""

from time import monotonic

from channels.db import database_sync_to_async

from . import services

LOOK_SECONDS = 300.0

_next_look = 0.0
_run_step = database_sync_to_async(services.run_step)


async def sweep_old() -> None:
    global _next_look
    if monotonic() >= _next_look and not await _run_step():
        _next_look = monotonic() + LOOK_SECONDS
