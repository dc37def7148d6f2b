"""Notes from outside the window of an agent's thread, found by its newest message."""

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

from langchain_core.messages import BaseMessage

from ..engine.compose import role_of, time_of
from ..engine.search import excerpts
from ..engine.search.archive import MessageIndex
from ..engine.search.ranking import Document
from ..engine.tokens import TokenCounter
from . import threads
from .stores import SummarySegment

MAX_ARCHIVES = 8


@dataclass(frozen=True, slots=True)
class ThreadArchive:
    """Messages 1..end of a thread, prepared for the search.

    `digest` proves that they are the same. `left_out` is the number of the open
    question, if it is one of them: while it is answered, it is no message of the past.
    """

    index: MessageIndex
    end: int
    left_out: int
    digest: str


class Recall:
    """The search in agents' threads.

    The archives of the threads used last are kept: a compaction adds messages to an
    archive, and only these are read.
    """

    def __init__(self, count_tokens: TokenCounter) -> None:
        self.count_tokens = count_tokens
        self._archives: list[ThreadArchive] = []
        self._lock = Lock()

    def find_notes(
        self,
        body: Sequence[BaseMessage],
        active: Sequence[SummarySegment],
        asked: int,
        room: int,
    ) -> list[BaseMessage]:
        """Return the messages before the window that fit the question best.

        They come in their order, in `room` tokens. `asked` is the question's index; -1
        means that there is none.
        """
        question = body[asked].text if active and room and asked >= 0 else ""
        if not question:
            return []
        with self._lock:
            index = self._open(body, active[-1], asked + 1).index
            hits = index.search(question, limit=None, at=time_of(body[asked]))
        chosen = excerpts.choose_excerpts(
            hits,
            {hit.seq: copy_numbered(hit.seq, body[hit.seq - 1]) for hit in hits},
            question,
            room=room,
            count_tokens=self.count_tokens,
        )
        return [note.message for note in chosen]

    def _open(
        self, body: Sequence[BaseMessage], last: SummarySegment, question: int
    ) -> ThreadArchive:
        """Return the archive up to a segment's end, which becomes the one used last."""
        cutoff, digest = last.block.last_seq, last.digest
        left_out = question if question <= cutoff else 0
        for known in self._archives:
            if (known.digest, known.left_out) == (digest, left_out):
                self._archives.remove(known)
                self._archives.append(known)
                return known
        found = self._find_beginning(body, cutoff, left_out)
        if found:
            self._archives.remove(found)
        index, end = (found.index, found.end) if found else (MessageIndex(), 0)
        index.add_documents(
            Document.from_text(seq, role_of(message), message.text, time_of(message))
            for seq, message in enumerate(body[end:cutoff], start=end + 1)
            # A call without a text, or a removed answer, has nothing to quote.
            if seq != left_out and message.text
        )
        archive = ThreadArchive(index, cutoff, left_out, digest)
        self._archives = [*self._archives, archive][-MAX_ARCHIVES:]
        return archive

    def _find_beginning(
        self, body: Sequence[BaseMessage], cutoff: int, left_out: int
    ) -> ThreadArchive | None:
        """Return the archive with most of these messages and no others."""
        usable = [
            each
            for each in self._archives
            if each.end < cutoff
            and each.left_out == (left_out if left_out <= each.end else 0)
        ]
        usable.sort(key=lambda each: each.end)
        digests = threads.digest_prefixes(body, [each.end for each in usable])
        pairs = zip(usable, digests, strict=True)
        same = [each for each, digest in pairs if each.digest == digest]
        return same[-1] if same else None


def copy_numbered(seq: int, message: BaseMessage) -> BaseMessage:
    """Return a copy that is quoted with its number in the thread."""
    return message.model_copy(update={"id": str(seq)})
