"""Conversations in parts of limited size, as the tools return them.

Nothing here depends on the protocol or on addresses, and the owner was checked before.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import Case, Q, When
from django.db.models.functions import Length, Substr

from chatsite.contrib.endpoint.conversation_hooks import name_client
from chatsite.turns import requests
from memory import library, transcript
from memory.models import Conversation, Message
from memory.search import conversation_search

# Characters of messages in one answer, and the extra that each message counts.
MAX_CHARS, ROW_CHARS = 40_000, 400
# Characters of the arguments of one tool call, and calls of one message.
MAX_ARGUMENT_CHARS, MAX_CALLS = 1_000, 64
MAX_FOUND = conversation_search.LIMIT
# Why a message is no longer in the model's view.
REMOVED = {
    "deleted_at": "deleted",
    "superseded_at": "replaced",
    "excluded_at": "hidden from the model",
}


class NotReadableError(Exception):
    """Raised for what can't be read; the text says why, and what to do."""


@dataclass(frozen=True, slots=True)
class TranscriptPosition:
    """The beginning of an answer: a message, and a character of it."""

    seq: int
    character: int = 0


def list_own_conversations(
    owner: AbstractBaseUser, after: str, limit: int, *, is_archived: bool
) -> tuple[list[Conversation], str]:
    """Return the user's conversations after a position, and the next position.

    Those with the latest change are first. The next position is "" on the last page.
    Raise NotReadableError.
    """
    rows = library.list_own(owner).order_by("-updated_at", "-uuid")
    rows = rows.filter(archived_at__isnull=not is_archived)
    if after:
        at, uuid = _read_place(after)
        earlier = Q(updated_at__lt=at) | Q(updated_at=at, uuid__lt=uuid)
        rows = rows.filter(earlier)
    found = list(rows[: limit + 1])
    if len(found) <= limit:
        return found, ""
    last = found[limit - 1]
    return found[:limit], f"{last.updated_at.isoformat()} {last.uuid}"


def _read_place(after: str) -> tuple[datetime, UUID]:
    at, _, uuid = after.partition(" ")
    try:
        return datetime.fromisoformat(at).astimezone(UTC), UUID(uuid)
    except (ValueError, OverflowError):
        text = "`after` is no place of a list: leave it out."
        raise NotReadableError(text) from None


def describe_in_list(conversation: Conversation) -> dict[str, Any]:
    return {
        "changed_at": conversation.updated_at,
        "begun_at": conversation.created_at,
        "pinned": conversation.pinned_at is not None,
        # "" = it is written here.
        "client": name_client(conversation),
    }


def find_in_transcripts(
    owner: AbstractBaseUser, query: str, within: Conversation | None, limit: int
) -> Iterator[tuple[Message, dict[str, Any]]]:
    """Yield the messages found, each with its description.

    Raise NotReadableError.
    """
    if not query.strip() or not transcript.is_storable(query):
        raise NotReadableError("A search needs words.")
    among = None
    if within:
        among = conversation_search.list_searched(owner).filter(pk=within.pk)
    for found in conversation_search.find_messages(owner, query, among)[:limit]:
        message = found.message
        yield (
            message,
            {
                "message": message.seq,
                "role": message.role,
                "at": message.created_at,
                "excerpt": found.before + found.match + found.after,
            },
        )


def read_transcript(
    conversation: Conversation, begin: TranscriptPosition, limit: int
) -> tuple[list[dict[str, Any]], TranscriptPosition | None]:
    """Return messages from a position on, and where the next part begins.

    The second value is None at the end.
    """
    rows = conversation.messages.filter(seq__gte=begin.seq).order_by("seq")
    sizes = rows.values_list("seq", Length("text"))[: limit + 1]
    room, taken, following = MAX_CHARS, dict[int, int](), None
    for seq, size in sizes:
        start = min(begin.character, size) if seq == begin.seq else 0
        if len(taken) == limit or room <= 0:
            following = TranscriptPosition(seq, start)
            break
        taken[seq] = min(size - start, room)
        if size - start > room:
            following = TranscriptPosition(seq, start + room)
            break
        room -= taken[seq] + ROW_CHARS
    first = Case(When(seq=begin.seq, then=begin.character + 1), default=1)
    read = rows.filter(seq__in=taken).defer("text", "sent_text", "reasoning")
    read = read.annotate(size=Length("text"), piece=Substr("text", first, MAX_CHARS))
    found = [
        _describe_message(row, row.piece[: taken[row.seq]])
        for row in requests.with_model(read)
    ]
    if begin.character and found and found[0]["message"] == begin.seq:
        found[0]["from_character"] = begin.character
    return found, following


def _describe_message(row: Any, text: str) -> dict[str, Any]:
    """Return the values of a message that are not empty."""
    removed = [word for name, word in REMOVED.items() if getattr(row, name)]
    said = {
        "role": row.role,
        "at": row.created_at,
        "model": row.model if row.role == Message.Role.ASSISTANT else None,
        "removed": removed[:1],
        "pinned": row.pinned_at is not None,
        "files": [place["name"] for place in row.attachments],
        "calls": [_describe_tool_call(call) for call in row.tool_calls[:MAX_CALLS]],
        "result_of_call": row.tool_call_id,
    }
    known = {name: value for name, value in said.items() if value}
    return {"message": row.seq, **known, "characters": row.size, "text": text}


def _describe_tool_call(call: dict[str, Any]) -> dict[str, Any]:
    arguments = json.dumps(call.get("args"), ensure_ascii=False)
    cut = {"characters": len(arguments)} if len(arguments) > MAX_ARGUMENT_CHARS else {}
    shown = arguments[:MAX_ARGUMENT_CHARS]
    return {"id": call.get("id"), "name": call.get("name"), "arguments": shown, **cut}
