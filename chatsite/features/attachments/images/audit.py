"""The invariants of the table of images."""

from collections.abc import Iterator
from hashlib import sha256

from memory.integrity.audit import Violation

from ..models import ImageFile
from .files import read_id


def find_false_images() -> Iterator[Violation]:
    """Bytes of which no message says that hash, as it is signed."""
    rows = ImageFile.objects.select_related("message").order_by("pk")
    for row in rows.defer("small").iterator(chunk_size=20):
        said = {
            read_id(place["id"]): place["image"]["sha256"]
            for place in row.message.attachments
            if place.get("image")
        }
        if said.get(row.file_id) != sha256(row.data).hexdigest():
            words = f"an image of message #{row.message.seq} is not what it says"
            yield Violation("R8.image", row.conversation_id, words)
