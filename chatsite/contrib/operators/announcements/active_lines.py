"""The announcements of now, as this process last read them.

No page asks the database: each process looks every few seconds, beside its other work.
"""

from time import monotonic

from channels.db import database_sync_to_async
from django.db.models.functions import Now

from .models import Announcement

LOOK_SECONDS = 4.0
# At once, those that began last.
MOST = 3


_lines: list[Announcement] = []
_next_look = 0.0


def list_lines() -> list[Announcement]:
    return _lines


def read_announced() -> None:
    global _lines
    rows = Announcement.objects.filter(begins_at__lte=Now(), ends_at__gt=Now())
    _lines = list(rows[:MOST])


async def look_again() -> None:
    global _next_look
    if monotonic() >= _next_look:
        _next_look = monotonic() + LOOK_SECONDS
        await database_sync_to_async(read_announced)()
