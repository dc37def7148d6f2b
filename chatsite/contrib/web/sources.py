"""Sources: pages of the web that a conversation has found or read.

Each has a number, by which a reply cites it. They are kept as files of the results.
"""

from collections.abc import Iterator, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from cachetools import LRUCache
from channels.db import database_sync_to_async
from django.db.models import Max

from chatsite.features.tools.context import CallContext
from chatsite.features.tools.models import ResultFile
from memory.models import Message

from .searching import FoundPage

# Turns whose numbers are known here, with those that are not stored yet.
MOST_TURNS = 1_000
_given: LRUCache[int, dict[str, int]] = LRUCache(MOST_TURNS)


async def number_sources(call: CallContext, results: Sequence[FoundPage]) -> list[int]:
    """Return the number of each result.

    It is the one that its address has in the conversation, or else a new one. Calls run
    side by side and are stored later, but one process has the turn.
    """
    addresses = [result.address for result in results]
    known, last = await database_sync_to_async(_read_known_numbers)(call, addresses)
    given = _given.setdefault(call.turn_id, {})
    last = max(last, *given.values(), 0)
    for address in addresses:
        if address not in known and address not in given:
            last += 1
            given[address] = last
    return [known.get(address) or given[address] for address in addresses]


def _read_known_numbers(
    call: CallContext, addresses: Sequence[str]
) -> tuple[dict[str, int], int]:
    rows = select_sources(call.conversation_id)
    known = dict(rows.filter(url__in=addresses).values_list("url", "source"))
    return known, rows.aggregate(last=Max("source"))["last"] or 0


def select_sources(conversation_id: int) -> Any:
    return ResultFile.objects.filter(
        conversation_id=conversation_id, source__isnull=False
    )


def find_source_address(call: CallContext, number: int) -> str:
    """Return the address of the source with this number, or ""."""
    rows = select_sources(call.conversation_id).filter(source=number)
    return rows.values_list("url", flat=True).first() or ""


def is_source(call: CallContext, address: str) -> bool:
    return select_sources(call.conversation_id).filter(url=address).exists()


def find_own_words(call: CallContext, word: str) -> Iterator[str]:
    """Yield the user's messages in the conversation that contain this word.

    Files are not the user's words.
    """
    rows = Message.objects.filter(
        conversation=call.conversation_id,
        conversation__deleted_at=None,
        role=Message.Role.USER,
        deleted_at=None,
        text__icontains=word,
    )
    for row in rows.only("text", "attachments").iterator(50):
        yield row.typed


def write_source(number: int, result: FoundPage, text: str) -> str:
    """Return the quoted source; nothing in it can end the quotation."""
    parts = {"title": result.title, "address": result.address, "date": result.date}
    named = "".join(
        f" {name}={quoteattr(value)}" for name, value in parts.items() if value
    )
    return f'<source number="{number}"{named}>{escape(text)}</source>'


def make_block(number: int, result: FoundPage) -> dict[str, Any]:
    """Return the source as users see it, beside the text."""
    return {
        "type": "file",
        "name": result.site,
        "title": result.title,
        "url": result.address,
        "source": number,
    }
