"""The switches of now, as this process last read them.

No request asks the database: each process looks every few seconds, beside its other
work.
"""

from time import monotonic

from channels.db import database_sync_to_async

from .models import SwitchedOff, fits_names

LOOK_SECONDS = 3.0

# Kinds and names, in which * is any letters.
_off: list[tuple[str, str]] = []
_next_look = 0.0


def is_off(kind: str, name: str) -> bool:
    return any(kind == off and fits_names(names, name) for off, names in _off)


def read_switches() -> None:
    global _off
    rows = SwitchedOff.objects.filter(on_at=None).order_by()
    _off = list(rows.values_list("kind", "name"))


async def read_when_due() -> None:
    global _next_look
    if monotonic() >= _next_look:
        _next_look = monotonic() + LOOK_SECONDS
        await database_sync_to_async(read_switches)()
