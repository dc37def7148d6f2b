"""The invariants of the tables of long files."""

from collections.abc import Iterator
from hashlib import sha256

from memory.integrity.audit import Violation

from ..models import FilePassage, LongFileUse


def find_false_files() -> Iterator[Violation]:
    """Long files that are not what their message says, as it is signed."""
    rows = LongFileUse.objects.select_related("message").order_by("pk")
    digests: dict[object, str] = {}
    for row in rows.iterator(chunk_size=20):
        places = row.message.attachments
        said = {each["long"]["sha256"] for each in places if each.get("long")}
        if row.file_id not in digests:
            digests[row.file_id] = _digest_file(row.file_id)
        if digests[row.file_id] not in said:
            words = f"a long file of message #{row.message.seq} is not what it says"
            yield Violation("R8.file", row.conversation_id, words)


def _digest_file(key: object) -> str:
    digest, passages = sha256(), FilePassage.objects.filter(file=key)
    for text in passages.order_by("number").values_list("text", flat=True).iterator():
        digest.update(text.encode())
    return digest.hexdigest()
