"""The forms of a message that its client sent, read from body pieces."""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from chatsite.contrib.endpoint.apis import find_api_by_name
from chatsite.contrib.endpoint.apis.api import Api
from chatsite.contrib.endpoint.apis.openai_responses import REFERENCE, find_kind
from chatsite.contrib.endpoint.identity.history import READERS, text_of_parts
from chatsite.contrib.endpoint.models import BodyPiece
from memory.models import ModelCall

from ..identity.canonical import UnreadableHistoryError, digest_of, normalize_text
from .body_pieces import OF_TEXT, find_pieces, write_out

# Forms read for one message; a client that adds a time stamp has sent many.
MAX_FORMS = 8
# Pieces read for one body.
MAX_PIECES = 2_000
# The names of the list of messages in a body.
LISTS = ("messages", "input")


def find_form(conversation: int, message: int, digest: bytes) -> str | None:
    """Return the canonical text of the form with this digest, or None."""
    pieces = BodyPiece.objects.filter(conversation=conversation, message=message)
    values = pieces.order_by("-number").values_list(*OF_TEXT)
    for (written,) in write_out(values[:MAX_FORMS]):
        for role, parts in _read_entries(written):
            if digest_of(role, parts) == digest:
                return text_of_parts(parts)
    return None


def read_changed_texts(call: ModelCall) -> dict[int, tuple[str, str]]:
    """Return the stored and the sent text of messages that differ, by number.

    A piece whose text equals the row has no text of its own, so only other pieces are
    read; of a long body, the last ones.
    """
    frame = call.refs["client"]
    pieces = find_pieces(call.conversation_id, frame["pieces"])
    pieces = pieces.filter(message__isnull=False, message__deleted_at=None)
    same = {*pieces.exclude(hole=None).values_list("message__seq", flat=True)}
    columns = ("text", "message__seq", "message__text")
    values = pieces.filter(hole=None).order_by("-number").values_list(*columns)
    written: dict[int, list[str]] = {}
    texts: dict[int, str] = {}
    for text, seq, said in values[:MAX_PIECES]:
        if seq not in same:
            written.setdefault(seq, []).insert(0, text)
            texts[seq] = said
    api = find_api_by_name(frame["wire"])
    sent = {seq: _read_written(api, some) for seq, some in written.items()}
    return {
        seq: (texts[seq], text)
        for seq, text in sorted(sent.items())
        if text is not None and normalize_text(text) != normalize_text(texts[seq])
    }


def _read_written(api: Api, pieces: list[str]) -> str | None:
    """Return the text of a message as it was sent; None: it is no message."""
    try:
        items = [json.loads(piece) for piece in pieces]
    except ValueError:
        return None
    items = api.list_sent({api.list_name: _as_sent(items)})
    if api.names_replies and any(find_kind(each) == REFERENCE for each in items):
        # An id alone has no text of the client.
        return None
    rows = api.make_rows(items)
    return rows[-1].text if rows else None


def _read_entries(written: str) -> Iterator[tuple[str, Any]]:
    """Yield the message of a piece, as each API reads it."""
    try:
        value = json.loads(written)
    except ValueError:  # its text was deleted
        return
    for make_reader in READERS.values():
        # A piece of one API may be no message of another.
        with suppress(UnreadableHistoryError):
            body = dict.fromkeys(LISTS, _as_sent([value]))
            reader = make_reader()
            for role, parts, *_ in reader.read(reader.list_items(body)):
                yield role, parts


def _as_sent(items: list[Any]) -> Any:
    """Return the list; with the Responses API, one text is the whole list."""
    return items[0] if isinstance(items[0], str) else items
