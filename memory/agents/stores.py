"""The memory that the middleware keeps of each thread, and its stores.

The memory of a thread is a frozen value with a version; a store replaces it only if no
other caller has. It holds summaries, never messages. `testing.py` has the tests that
every store has to pass.
"""

import json
import logging
import re
import sqlite3
from collections import OrderedDict
from dataclasses import asdict, dataclass, replace
from os import PathLike
from threading import Lock
from typing import Any, Protocol, Self

from langgraph.store.base import BaseStore
from pydantic import TypeAdapter, ValidationError

from ..engine.compose import SummaryBlock
from ..engine.summaries.schemas import combine_summaries

logger = logging.getLogger(__name__)

# NUL, which some databases refuse, and lone surrogates, which UTF-8 refuses.
UNSTORABLE = re.compile("[\0\ud800-\udfff]")

CREATE = """\
CREATE TABLE IF NOT EXISTS thread_memory (
    thread TEXT PRIMARY KEY, version INTEGER NOT NULL, memory TEXT NOT NULL
) WITHOUT ROWID"""
# Each compares and replaces in one statement, which is as good as a transaction.
UPDATE = """\
UPDATE thread_memory SET version = :version, memory = :memory
WHERE thread = :thread AND version = :seen"""
INSERT = """\
INSERT INTO thread_memory VALUES (:thread, :version, :memory)
ON CONFLICT (thread) DO UPDATE
SET version = excluded.version, memory = excluded.memory
WHERE thread_memory.version = :seen"""


@dataclass(frozen=True, slots=True)
class SummarySegment:
    """An active summary.

    `digest` is that of all messages up to its last one: if it has changed, one of them
    was edited or removed.
    """

    block: SummaryBlock
    digest: str


@dataclass(frozen=True, slots=True)
class CompactionRecord:
    """The result of one compaction, or its error. Records are only appended."""

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
    segments: tuple[SummarySegment, ...] = ()
    records: tuple[CompactionRecord, ...] = ()
    # Failures in a row, and when (seconds since 1970) to try again.
    failures: int = 0
    rest_until: float = 0.0

    @property
    def blocks(self) -> list[SummaryBlock]:
        return [segment.block for segment in self.segments]

    @property
    def data(self) -> dict[str, Any]:
        """The data of the active summaries, in the form of the policy's profile.

        The data of all levels is one; summaries that are plain text have none.
        """
        active = {segment.block.version for segment in self.segments}
        made = (record for record in self.records if record.version in active)
        parts = sorted(made, key=lambda record: record.first_seq)
        return combine_summaries([part.structured for part in parts if part.structured])

    def add_compaction(
        self, segments: tuple[SummarySegment, ...], record: CompactionRecord
    ) -> Self:
        return replace(
            self,
            version=self.version + 1,
            segments=segments,
            records=(*self.records, record),
            failures=0,
            rest_until=0.0,
        )

    def add_failure(self, record: CompactionRecord, rest_until: float) -> Self:
        return replace(
            self,
            version=self.version + 1,
            records=(*self.records, record),
            failures=self.failures + 1,
            rest_until=rest_until,
        )

    def dump(self) -> dict[str, Any]:
        """Return plain JSON for any database, for a store that outlives the process."""
        return _make_storable(asdict(self))

    @classmethod
    def load(cls, value: object) -> "ThreadMemory":
        """Return the memory that `dump` returned; anything else is an empty memory.

        Only summaries are lost by that, and they are made again. The empty memory has
        the version of the value, so that it can be replaced.
        """
        try:
            return _ADAPTER.validate_python(value)
        except ValidationError:
            logger.warning("a stored memory cannot be read and is made again")
            version = value.get("version") if isinstance(value, dict) else None
            return cls(version if type(version) is int else 0)


_ADAPTER = TypeAdapter(ThreadMemory)


def _make_storable(value: Any) -> Any:
    if isinstance(value, str):
        return UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {
            _make_storable(key): _make_storable(each) for key, each in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_make_storable(each) for each in value]
    return value


class MemoryStore(Protocol):
    """A store of memories, by thread id.

    Called from several threads, and from none in which an event loop runs, unless the
    agent is called there without `await`.
    """

    def load(self, thread_id: str) -> ThreadMemory:
        """Return the memory of a thread; an empty one if there is none."""
        ...

    def save(self, thread_id: str, memory: ThreadMemory, *, seen: int) -> bool:
        """Store it if the stored version is still `seen`; else return False.

        The version of a thread without a memory is 0.
        """
        ...

    def delete(self, thread_id: str) -> None:
        """Delete the memory of a thread.

        For your own code: the middleware deletes none.
        """
        ...


class InMemoryStore:
    """Memories of the threads used last, lost with the process."""

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

    def delete(self, thread_id: str) -> None:
        with self._lock:
            self._memories.pop(thread_id, None)


class SQLiteStore:
    """Memories in an SQLite file, for the processes of one machine.

    Raises sqlite3.Error. A process that forks must open it after the fork.
    """

    def __init__(self, path: str | PathLike[str], *, timeout: float = 30.0) -> None:
        """Open the file; `timeout`: seconds to wait for another process that writes."""
        self._connection = sqlite3.connect(
            path, timeout=timeout, isolation_level=None, check_same_thread=False
        )
        self._lock = Lock()
        # Readers and a writer do not wait for each other.
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute(CREATE)

    def load(self, thread_id: str) -> ThreadMemory:
        with self._lock:
            row = self._connection.execute(
                "SELECT memory FROM thread_memory WHERE thread = ?", [thread_id]
            ).fetchone()
        return ThreadMemory.load(json.loads(row[0])) if row else ThreadMemory()

    def save(self, thread_id: str, memory: ThreadMemory, *, seen: int) -> bool:
        values = {
            "thread": thread_id,
            "version": memory.version,
            "memory": json.dumps(memory.dump(), ensure_ascii=False),
            "seen": seen,
        }
        # A thread that was deleted meanwhile stays deleted.
        statement = UPDATE if seen else INSERT
        with self._lock:
            return self._connection.execute(statement, values).rowcount == 1

    def delete(self, thread_id: str) -> None:
        with self._lock:
            self._connection.execute(
                "DELETE FROM thread_memory WHERE thread = ?", [thread_id]
            )

    def close(self) -> None:
        self._connection.close()


class LangGraphStore:
    """Memories in a `BaseStore` of LangGraph, such as the one that the agent has.

    Such a store cannot compare and replace in one step. Where two processes compact a
    thread at the same moment, the memory of the later one stays; it is as good.
    """

    def __init__(
        self, store: BaseStore, *, namespace: tuple[str, ...] = ("windowpane",)
    ) -> None:
        self.store = store
        self.namespace = namespace
        self._lock = Lock()

    def load(self, thread_id: str) -> ThreadMemory:
        item = self.store.get(self.namespace, thread_id)
        return ThreadMemory.load(item.value) if item else ThreadMemory()

    def save(self, thread_id: str, memory: ThreadMemory, *, seen: int) -> bool:
        with self._lock:
            if self.load(thread_id).version != seen:
                return False
            # The index for search by meaning is for other data in the store.
            self.store.put(self.namespace, thread_id, memory.dump(), index=False)
            return True

    def delete(self, thread_id: str) -> None:
        self.store.delete(self.namespace, thread_id)
