"""Keeps the files in results of tools, as long as the text that they came with."""

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import F, QuerySet

from chatsite.features.tools import results
from chatsite.features.tools.models import ADDRESS, ResultFile
from memory import bundle
from memory.models import Conversation, Message


@dataclass(frozen=True, slots=True)
class FoundSource:
    """A page of the web, and the number of the message that it was first found in."""

    seq: int
    address: str
    title: str


COLUMNS = ("place", "name", "title", "kind", "url", "size", "source")


def keep(message: Message, content: Any) -> None:
    """Store the files of a result, in the transaction that stores its text."""
    files = results.files_of(content)
    if files:
        ResultFile.objects.bulk_create(
            ResultFile(
                conversation_id=message.conversation_id,
                message=message,
                place=place,
                **file._asdict(),
            )
            for place, file in enumerate(files)
        )


def forget(conversation: Conversation, seq: int, **_: object) -> None:
    """Delete the files of message `seq`, whose text was deleted."""
    ResultFile.objects.filter(conversation=conversation, message__seq=seq).delete()


def find_sources(
    conversation: Conversation,
    numbers: Sequence[int],
    shown: QuerySet[Message] | None = None,
) -> dict[int, FoundSource]:
    """Return {number: source} of those with these numbers and a web address."""
    rows = ResultFile.objects.filter(conversation=conversation, source__in=numbers)
    if shown is not None:
        rows = rows.filter(message__in=shown)
    found: dict[int, FoundSource] = {}
    columns = ("source", "message__seq", "url", "title", "name")
    for number, seq, url, title, name in rows.order_by(
        "message__seq", "place"
    ).values_list(*columns):
        if number not in found and ADDRESS.match(url):
            shown_title = " – ".join(filter(None, (title, name)))
            found[number] = FoundSource(seq, url, shown_title)
    return found


def export(files: QuerySet[ResultFile]) -> list[dict[str, Any]]:
    """Return the rows as JSON."""
    rows = files.order_by("message__seq", "place")
    return [
        {**row, "data": data and base64.b64encode(data).decode()}
        for row in rows.values(*COLUMNS, "data", seq=F("message__seq"))
        for data in [row.pop("data")]
    ]


def write(
    conversation: Conversation,
    messages: Mapping[int, Message],
    values: Iterable[Mapping[str, Any]],
    batch: bundle.Batch = bundle.at_once,
) -> None:
    """Give copied or imported results their files, which export() has read."""
    for each in values:
        message = messages.get(each["seq"])
        if message is None or message.role != Message.Role.TOOL or message.deleted_at:
            continue
        row = {name: each[name] for name in COLUMNS}
        with batch(0):
            ResultFile.objects.get_or_create(
                message=message,
                place=row.pop("place"),
                defaults={
                    **row,
                    "conversation": conversation,
                    "data": _decode(each["data"]),
                },
            )


def _decode(text: str | None) -> bytes | None:
    """Return the bytes, None also for those that no tool could have returned."""
    try:
        data = None if text is None else binascii.a2b_base64(text)
    except ValueError:
        return None
    return data if data is None or len(data) <= settings.TOOL_FILE_BYTES else None
