"""The pages of the admin; importing this package registers them."""

from . import (
    calls,
    conversations,
    events,
    messages,
    people,
    reviews,
    summaries,
    tombstones,
    turns,
)

__all__ = [
    "calls",
    "conversations",
    "events",
    "messages",
    "people",
    "reviews",
    "summaries",
    "tombstones",
    "turns",
]
