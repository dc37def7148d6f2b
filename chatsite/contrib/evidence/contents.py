"""The file of evidence: a conversation, one request made of it, and its account.

Values of open form are JSON in strings, so that each number of the file is whole.
README.md describes the fields.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.utils import timezone

from memory.models import Conversation, Message, Summary

from .account import MessageAccount, MessagePlace
from .proven_request import ProvenRequest, find_proven_request

VERSION = "0.4.0"  # of the draft of vCon
OWN = "windowpane"
PLAIN_TEXT = {"mediatype": "text/plain", "encoding": "none"}
# Columns of a message that are given where they are set.
TIMES = ("pinned_at", "excluded_at", "superseded_at", "deleted_at", "imported_at")
CALL = (
    *("purpose", "message__seq", "summary__version", "model", "provider", "sha256"),
    *("body_sha256", "tokens_input", "tokens_cached", "tokens_output", "error"),
    "created_at",
)
SUMMARY = ("version", "level", "first_seq", "last_seq", "status")
CHANGE = ("action", "seq", "version", "created_at")


def collect_file(
    conversation: Conversation, reply: int | None, *, with_images: bool = False
) -> dict[str, Any]:
    """Return the file for the request of a reply, else for the next request.

    Raises ModelCall.DoesNotExist for a number that is no reply.
    """
    now = timezone.now()
    sent = find_proven_request(conversation, reply)
    at = sent.at or now
    rows = conversation.messages.order_by("seq")
    messages = [*(rows.filter(seq__lte=sent.reply) if sent.reply else rows)]
    versions = conversation.summaries.filter(created_at__lte=at)
    versions = versions.select_related("author").prefetch_related("folded_from")
    summaries = [*versions.order_by("version")]
    account = MessageAccount(sent.built.refs, summaries, at, sent.reply, sent.held)
    places = [account.find_place(row) for row in messages]
    counts = Counter(place.name for place in places if place.name != "reply")
    dialog = [
        _describe_dialog(row, place, sent)
        for row, place in zip(messages, places, strict=True)
    ]
    owner, origin = conversation.owner.get_username(), conversation.branched_from
    # What the owner has done, such as pins and exclusions.
    changes = _list_rows(conversation.changes.all(), CHANGE)
    calls = conversation.model_calls.filter(created_at__lte=at)
    return {
        "vcon": VERSION,
        "uuid": _make_uuid(f"{conversation.uuid} {sent.reply} {now.isoformat()}"),
        "created_at": write_moment(now),
        "subject": conversation.title,
        "extensions": [OWN],
        "parties": [{"name": owner}, {"name": sent.model}],
        "dialog": dialog,
        "analysis": [_describe_summary(row, messages, sent) for row in summaries],
        OWN: {
            "format": 1,
            "conversation": str(conversation.uuid),
            "branched_from": str(origin.uuid) if origin else None,
            "reply": sent.reply,
            "messages": sum(counts.values()),
            "account": dict(counts),
            "request": sent.describe_request(with_images=with_images),
            "images": sent.images if with_images else {},
            "sections": sent.sections,
            "changes": [row | {"by": owner} for row in changes],
            "calls": _list_rows(calls, CALL),
            "policy": dump_open_value(conversation.policy),
        },
    }


def write_moment(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def dump_open_value(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _make_uuid(text: str) -> str:
    """Return a UUID of version 8, as the draft wants it."""
    data = bytearray(hashlib.sha256(text.encode()).digest()[:16])
    data[6], data[8] = data[6] & 0x0F | 0x80, data[8] & 0x3F | 0x80
    return str(UUID(bytes=bytes(data)))


def _describe_dialog(
    row: Message, place: MessagePlace, sent: ProvenRequest
) -> dict[str, Any]:
    is_whole = place.name == "sent" and bool(row.text) and sent.has_text(row.text)
    times = {name: getattr(row, name) for name in TIMES}
    own = {
        "seq": row.seq,
        "role": row.role,
        "place": place.name,
        "is_whole": is_whole,
        **place.details,
        **{name: write_moment(at) for name, at in times.items() if at},
    }
    texts = {"tool_call_id": row.tool_call_id, "reasoning": row.reasoning}
    own |= {name: text for name, text in texts.items() if text}
    parts = {"tool_calls": row.tool_calls, "attachments": row.attachments}
    own |= {name: dump_open_value(part) for name, part in parts.items() if part}
    if row.extras:
        data = dump_open_value(row.extras).encode()
        found = {"readable": "only by its provider", "bytes": len(data)}
        own["provider_items"] = found | {"sha256": hashlib.sha256(data).hexdigest()}
    return {
        "type": "text",
        "start": write_moment(row.created_at),
        "parties": [0 if row.role == Message.Role.USER else 1],
        **PLAIN_TEXT,
        "body": row.text,
        "message_id": str(row.seq),
        OWN: own,
    }


def _describe_summary(
    row: Summary, messages: Sequence[Message], sent: ProvenRequest
) -> dict[str, Any]:
    """Describe a version, and the places in the dialog of the messages it read."""
    is_read = [
        row.first_seq <= each.seq <= row.last_seq
        and not any(
            at and at < row.written_at
            for at in (each.excluded_at, each.superseded_at, each.deleted_at)
        )
        for each in messages
    ]
    return {
        "type": "summary",
        "dialog": []
        if row.is_trimmed
        else [n for n, is_in in enumerate(is_read) if is_in],
        "vendor": "Windowpane",
        "product": row.model,
        **PLAIN_TEXT,
        "body": row.text,
        OWN: {
            **{name: getattr(row, name) for name in SUMMARY},
            "made_from": sorted(each.version for each in row.folded_from.all()),
            "is_sent": row.version in sent.built.refs["summaries"],
            "trigger": dump_open_value(row.trigger),
            "author": row.author.get_username() if row.author else None,
            "created_at": write_moment(row.created_at),
        },
    }


def _list_rows(rows: QuerySet[Any], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return these columns of the rows, in the order in which they were made."""
    return [
        {**row, "created_at": write_moment(row["created_at"])}
        for row in rows.order_by("pk").values(*names)
    ]
