"""The pieces of a conversation's bodies, found by hash and joined again."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.db.models import F, QuerySet

from chatsite.contrib.endpoint.models import BodyPiece
from memory.models import Conversation, Message
from memory.ranges import Ranges, in_ranges, to_ranges
from memory.sql import prepared_rows

from .bodies import Hollow, SentPiece, fill_in, hollow_out, join_body

# The columns of a piece with which it is written as it was sent.
OF_TEXT = ("text", "hole", "is_ascii", "message__text")


def unpack_numbers(spans: Ranges) -> Iterator[int]:
    for first, last in spans:
        yield from range(first, last + 1)


def find_pieces(conversation_id: int, spans: Ranges) -> QuerySet[BodyPiece]:
    """Return the pieces with these numbers, each once."""
    # A short message that repeats splits them into thousands of spans.
    wanted = in_ranges(to_ranges(set(unpack_numbers(spans))))
    rows = BodyPiece.objects.filter(conversation=conversation_id)
    return rows.alias(seq=F("number")).filter(wanted)


@prepared_rows()
def _list_digests(conversation_id: Any) -> QuerySet[BodyPiece, Any]:
    rows = BodyPiece.objects.filter(conversation_id=conversation_id).order_by()
    return rows.values_list("digest", "number")


class ConversationPieces:
    """The pieces of one conversation.

    It has to be locked while new ones are stored.
    """

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        found = _list_digests(conversation_id=conversation.pk)
        self._numbers = {bytes(digest): number for digest, number in found}
        self._last = max(self._numbers.values(), default=0)

    def list_new(self, pieces: Iterable[SentPiece]) -> list[SentPiece]:
        known = self._numbers
        return [p for p in pieces if p.digest not in known and not p.is_rebuilt]

    def list_numbers(self, pieces: Iterable[SentPiece]) -> list[int]:
        """Return the numbers of stored pieces; 0 = rebuilt from references."""
        known = self._numbers
        return [0 if p.is_rebuilt else known[p.digest] for p in pieces]

    def list_messages(self) -> Iterable[tuple[int, int]]:
        """Return the numbers of pieces with those of their messages."""
        rows = BodyPiece.objects.filter(conversation=self.conversation)
        found = rows.exclude(message=None).values_list("number", "message__seq")
        return found.iterator()

    def store_new(
        self, pieces: Iterable[SentPiece], messages: Mapping[int, Message]
    ) -> None:
        """Store the pieces that are new.

        `messages` maps the position of a message to its row.
        """
        new = []
        for piece in self.list_new(pieces):
            digest = piece.digest
            if digest in self._numbers:
                continue  # a second one of this body
            self._last += 1
            self._numbers[digest] = self._last
            message = messages.get(piece.at) if piece.at is not None else None
            # Only the exact text of the row can be put back.
            hollow = hollow_out(piece.text, message.text if message else "")
            new.append(
                BodyPiece(
                    conversation=self.conversation,
                    number=self._last,
                    digest=digest,
                    message=message,
                    **hollow._asdict(),
                )
            )
        BodyPiece.objects.bulk_create(new)


def rebuild_body(
    conversation: Conversation, frame: Mapping[str, Any], rebuilt: str = ""
) -> bytes:
    """Return the body that was sent, from the references of a request.

    A piece that was deleted is empty, and the hash then differs. `rebuilt` is piece 0.
    """
    found = read_pieces(conversation.pk, frame["pieces"]) | {0: rebuilt}
    return join_pieces(frame, found)


def read_pieces(conversation_id: int, spans: Ranges) -> dict[int, str]:
    """Return the texts of the pieces with these numbers."""
    rows = find_pieces(conversation_id, spans)
    return dict(write_out(rows.values_list("number", *OF_TEXT).iterator()))


def write_out(values: Iterable[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    """Yield rows that end with the columns of OF_TEXT, with the text in their place."""
    for *own, text, hole, is_ascii, said in values:
        yield (*own, fill_in(Hollow(text, hole, is_ascii), said or ""))


def join_pieces(frame: Mapping[str, Any], found: Mapping[int, str]) -> bytes:
    pieces = (found.get(number, "") for number in unpack_numbers(frame["pieces"]))
    return join_body(frame["between"], pieces)


def read_stored_object(written: str | bytes) -> dict[str, Any]:
    """Return a body or an item of it; {} where a piece of it was deleted."""
    try:
        value = json.loads(written)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def copy_pieces(
    conversation: Conversation, branch: Conversation, messages: Mapping[int, Message]
) -> None:
    """Copy the pieces that the requests of a branch's replies need."""
    rows = BodyPiece.objects.filter(conversation=conversation)
    copies = []
    for row in rows.annotate(seq=F("message__seq")).order_by("number").iterator():
        message = messages.get(row.seq)
        if row.message_id and message is None:
            continue
        row.pk, row.conversation, row.message = None, branch, message
        row._state.adding = True
        copies.append(row)
    BodyPiece.objects.bulk_create(copies, batch_size=200)
