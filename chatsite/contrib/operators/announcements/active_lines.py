"""The announcements of now, as this process last read them.

No page asks the database: each process looks every few seconds, beside its other work.
"""

from dataclasses import dataclass
from time import monotonic

from channels.db import database_sync_to_async
from django.db.models.functions import Now
from django.utils.translation import get_language

from .models import Announcement

LOOK_SECONDS = 4.0
# At once, those that began last.
MOST = 3


@dataclass(frozen=True, slots=True)
class AnnouncementLine:
    text: str
    text_zh: str
    is_warning: bool

    def translated_text(self) -> str:
        """Return the text in the language of the page."""
        is_chinese = (get_language() or "").startswith("zh")
        return (is_chinese and self.text_zh) or self.text


_lines: list[AnnouncementLine] = []
_next_look = 0.0


def list_lines() -> list[AnnouncementLine]:
    return _lines


def read_announced() -> None:
    global _lines
    rows = Announcement.objects.filter(begins_at__lte=Now(), ends_at__gt=Now())
    _lines = [
        AnnouncementLine(row.text, row.text_zh, row.level == Announcement.Level.WARNING)
        for row in rows[:MOST]
    ]


async def look_again() -> None:
    global _next_look
    if monotonic() >= _next_look:
        _next_look = monotonic() + LOOK_SECONDS
        await database_sync_to_async(read_announced)()
