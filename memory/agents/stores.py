"""What the middleware remembers of each thread, and the place it is kept in.

The memory of a thread is a frozen value with a version; a store replaces it only if no
other caller has. It holds summaries, never messages.
"""

import logging
from collections import OrderedDict
from dataclasses import asdict, dataclass, replace
from threading import Lock
from typing import Any, Protocol, Self

from pydantic import TypeAdapter, ValidationError

from ..engine.compose import SummaryBlock

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Segment:
    """An active summary. `digest` is that of all messages up to its last one: if it
    has changed, one of them was edited or removed.
    """

    block: SummaryBlock
    digest: str


@dataclass(frozen=True, slots=True)
class CompactionRecord:
    """What one compaction did, or why it failed. Records are only ever appended."""

    version: int
    level: int
    first_seq: int
    last_seq: int
    trigger: tuple[str, float, float]
    replaced: tuple[int, ...]
    tokens_before: int
    tokens_after: int
    text: str = ""
    prompt_hash: str = ""
    rewritten: bool = False
    structured: dict[str, Any] | None = None
    flags: dict[str, list[str]] | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class ThreadMemory:
    """The memory of one thread: the active segments tile its first messages."""

    version: int = 0
    segments: tuple[Segment, ...] = ()
    records: tuple[CompactionRecord, ...] = ()
    # Failures in a row, and when (seconds since 1970) to try again.
    failures: int = 0
    rest_until: float = 0.0

    @property
    def blocks(self) -> list[SummaryBlock]:
        return [segment.block for segment in self.segments]

    def compacted(
        self, segments: tuple[Segment, ...], record: CompactionRecord
    ) -> Self:
        return replace(
            self,
            version=self.version + 1,
            segments=segments,
            records=(*self.records, record),
            failures=0,
            rest_until=0.0,
        )

    def failed(self, record: CompactionRecord, rest_until: float) -> Self:
        return replace(
            self,
            version=self.version + 1,
            records=(*self.records, record),
            failures=self.failures + 1,
            rest_until=rest_until,
        )

    def dump(self) -> dict[str, Any]:
        """Plain JSON, for a store that outlives the process."""
        return asdict(self)

    @classmethod
    def load(cls, value: object) -> "ThreadMemory":
        """From what `dump` gave. Anything else is an empty memory: nothing is lost by
        that but summaries, which are made again.
        """
        try:
            return TypeAdapter(cls).validate_python(value)
        except ValidationError:
            logger.warning("a stored memory cannot be read and is made again")
            return cls()


class MemoryStore(Protocol):
    """Where memories are kept, by thread id. Called from several threads."""

    def load(self, thread_id: str) -> ThreadMemory:
        """The memory of a thread; an empty one if there is none."""
        ...

    def save(self, thread_id: str, memory: ThreadMemory, *, seen: int) -> bool:
        """Store it if the stored version is still `seen`; else False."""
        ...


class InMemoryStore:
    """Memories of the threads used last, gone with the process."""

    def __init__(self, *, max_threads: int = 10_000) -> None:
        self.max_threads = max_threads
        self._memories: OrderedDict[str, ThreadMemory] = OrderedDict()
        self._lock = Lock()

    def load(self, thread_id: str) -> ThreadMemory:
        with self._lock:
            return self._memories.get(thread_id) or ThreadMemory()

    def save(self, thread_id: str, memory: ThreadMemory, *, seen: int) -> bool:
        with self._lock:
            stored = self._memories.get(thread_id) or ThreadMemory()
            if stored.version != seen:
                return False
            self._memories[thread_id] = memory
            self._memories.move_to_end(thread_id)
            if len(self._memories) > self.max_threads:
                self._memories.popitem(last=False)
            return True
