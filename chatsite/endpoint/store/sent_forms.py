"""The forms of a message that its client has sent, read from the pieces of bodies."""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from chatsite.endpoint.identity.canonical import UnreadableHistoryError, digest_of
from chatsite.endpoint.identity.history import WIRES, text_of_parts
from chatsite.endpoint.models import BodyPiece

from .bodies import Hollow, fill_in

# That are read of one message; a client that stamps it each time has sent many.
MOST_FORMS = 8
# What a list of messages is called in a body.
LISTS = ("messages", "input")


def find_form(conversation: int, message: int, digest: bytes) -> str | None:
    """The canonical text of the form with this digest, in its latest pieces."""
    pieces = BodyPiece.objects.filter(conversation=conversation, message=message)
    values = pieces.order_by("-number").values_list(
        "text", "hole", "is_ascii", "message__text"
    )
    for text, hole, is_ascii, said in values[:MOST_FORMS]:
        written = fill_in(Hollow(text, hole, is_ascii), said)
        for role, parts in _read_entries(written):
            if digest_of(role, parts) == digest:
                return text_of_parts(parts)
    return None


def _read_entries(written: str) -> Iterator[tuple[str, Any]]:
    """The message of a piece, as each of the wires reads it."""
    try:
        value = json.loads(written)
    except ValueError:  # its text was deleted
        return
    for wire in WIRES.values():
        # What one wire writes may be no message of another.
        with suppress(UnreadableHistoryError):
            for role, parts, *_ in wire.list_entries(dict.fromkeys(LISTS, [value])):
                yield role, parts
