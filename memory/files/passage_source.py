"""Where the passages of long files come from, which an app puts in its place.

The message of a long file has only its beginning. What fits a later message is found by
a search in the file, quoted among the notes, and referred to by its place.
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

# The number of a message, a place among its attachments, and from where to where.
Ref = Sequence[int]


class PassageSource:
    """Where the passages of long files are. As it is here, there are no such files."""

    def find_in_files(
        self,
        conversation: "Conversation",
        newest: "Message",
        question: str,
        *,
        limit: int,
        at: datetime | None,
    ) -> Sequence[Passage]:
        """The best of each file that is in the model's view up to `newest`."""
        return []

    def read_from_files(
        self, conversation: "Conversation", refs: Iterable[Ref]
    ) -> Sequence[Passage]:
        """Those at these places, in this order; without those whose file is gone."""
        return []


# The one that is asked.
current = PassageSource()


def find_room(
    conversation: "Conversation", limit: int | None, *, with_own: bool = False
) -> int:
    """Tokens that passages may have in a request of `limit`; 0: nothing is sent of long
    files, or there are none. `with_own`: the message to be sent brings one."""
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
    """What of the long files of a conversation fits the newest message. Without such a
    file, the database is not asked."""
    has_own = any(place.get("long") for place in newest.attachments)
    room = find_room(conversation, limit, with_own=has_own)
    if not room:
        return []
    breadth = excerpts.find_breadth(newest.typed)
    found = current.find_in_files(
        conversation,
        newest,
        newest.typed,
        limit=breadth.hits,
        at=newest.created_at,
    )
    return file_passages.choose_passages(
        found,
        room=room,
        min_fit=breadth.min_fit * file_passages.FIT_SHARE,
        count_tokens=count_tokens,
    )


def refer_passages(notes: Iterable[RecallNote]) -> list[list[int]]:
    """By what a request refers to those of its notes that are of long files."""
    return [
        [note.seq, note.place, *note.span]
        for note in notes
        if note.place is not None and note.span
    ]


def restore_passages(
    conversation: "Conversation", refs: Iterable[Ref]
) -> list[BaseMessage]:
    """What was quoted of long files, from its references."""
    if not (wanted := [*refs]):
        return []
    found = current.read_from_files(conversation, wanted)
    return [*map(file_passages.quote_passage, found)]
