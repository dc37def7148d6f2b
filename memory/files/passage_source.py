"""The source of the passages of long files, which an app replaces.

The message of a long file has only its beginning. Passages that fit a later message are
found by a search in the file, quoted among the notes, and referred to by their place.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from django.conf import settings
from langchain_core.messages import BaseMessage

from memory.engine import budget
from memory.engine.search import excerpts, file_passages
from memory.engine.search.excerpts import RecallNote
from memory.engine.search.file_passages import Passage
from memory.engine.tokens import TokenCounter

if TYPE_CHECKING:
    from memory.models import Conversation, Message

# The number of a message, a place among its attachments, and start and end.
Ref = Sequence[int]


class PassageSource:
    """The source of passages of long files; this one has no files."""

    def find_in_files(
        self,
        conversation: "Conversation",
        newest: "Message",
        question: str,
        *,
        limit: int,
        at: datetime | None,
    ) -> Sequence[Passage]:
        """Return the best passages of each file in the model's view up to `newest`."""
        return []

    def read_from_files(
        self, conversation: "Conversation", refs: Iterable[Ref]
    ) -> Sequence[Passage]:
        """Return the passages at these places, in order, if their file exists."""
        return []


# The source in use.
current = PassageSource()


def find_room(
    conversation: "Conversation", limit: int | None, *, with_own: bool = False
) -> int:
    """Return the tokens that passages may have in a request of `limit`.

    0 means that nothing is sent of long files, or that there are none. `with_own`: the
    message to be sent has one itself.
    """
    has_files = with_own or conversation.long_files
    if not (has_files and conversation.get_policy().recall_tokens):
        return 0
    return budget.for_files(settings.ATTACHMENT_PASSAGE_TOKENS, limit)


def find_file_notes(
    conversation: "Conversation",
    newest: "Message",
    limit: int | None,
    count_tokens: TokenCounter,
) -> list[RecallNote]:
    """Return the passages of long files that fit the newest message, as notes.

    Without such a file, the database is not asked.
    """
    has_own = any(place.get("long") for place in newest.attachments)
    room = find_room(conversation, limit, with_own=has_own)
    if not room:
        return []
    breadth = excerpts.find_breadth(newest.typed)
    found = current.find_in_files(
        conversation, newest, newest.typed, limit=breadth.hits, at=newest.created_at
    )
    return file_passages.choose_passages(
        found,
        room=room,
        min_fit=breadth.min_fit * file_passages.FIT_SHARE,
        count_tokens=count_tokens,
    )


def refer_passages(notes: Iterable[RecallNote]) -> list[list[int]]:
    """Return the references to those notes that are passages of long files."""
    return [
        [note.seq, note.place, *note.span]
        for note in notes
        if note.place is not None and note.span
    ]


def restore_passages(
    conversation: "Conversation", refs: Iterable[Ref]
) -> list[BaseMessage]:
    """Return the quoted passages of long files from their references."""
    if not (wanted := [*refs]):
        return []
    found = current.read_from_files(conversation, wanted)
    return [*map(file_passages.quote_passage, found)]
