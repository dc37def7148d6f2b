"""The cards of attached files on a message of the transcript."""

from dataclasses import dataclass

from memory.engine.attachments import Image, LongText, restore_attachments, typed_part
from memory.models import Message

# Of an attachment's text, shown when its card is opened; all of it is a download.
SHOWN_CHARS = 4_000


@dataclass(frozen=True, slots=True)
class AttachmentCard:
    """One file of a message, by its place among them.

    `text` is its beginning, and `rest` how many characters follow. `image`: what it
    shows, if it is one. `long`: its part of a text that is stored beside the message.
    """

    place: int
    name: str
    size: int
    tokens: int
    text: str
    rest: int
    image: Image | None = None
    long: LongText | None = None


def find_typed_text(row: Message) -> str:
    """Return the typed text of a message that was read with its text as `head`."""
    return typed_part(row.head, row.attachments)


def make_attachment_cards(row: Message) -> tuple[AttachmentCard, ...]:
    files = zip(
        row.attachments, restore_attachments(row.head, row.attachments), strict=True
    )
    return tuple(
        AttachmentCard(
            place=place,
            name=file.name,
            size=file.size,
            tokens=known["tokens"],
            text=file.text[:SHOWN_CHARS],
            rest=max(0, len(file.text) - SHOWN_CHARS),
            image=file.image,
            long=file.long,
        )
        for place, (known, file) in enumerate(files)
    )
