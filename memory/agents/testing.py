"""Tests that every store of memories has to pass, for pytest or unittest.

class TestMyStore(StoreContract):
    def make_store(self):
        return MyStore(...)
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver

from ..engine.compose import SummaryBlock
from .middleware import WindowpaneMiddleware
from .stores import CompactionRecord, MemoryStore, SummarySegment, ThreadMemory

# Quotes, markup, Chinese, an emoji, controls, and characters that columns refuse.
HOSTILE = "\"'`<&>{}%s\\ 我叫小明 🦊\u202e\x01\t\r\n\0\ud800 end"
THREADS = ("1", "thread:a/b|c.d?e", "我的", "x" * 200, "")


def make_memory(version: int, text: str = "They talked.") -> ThreadMemory:
    """Return a memory after `version` compactions, the newest with this text."""
    block = SummaryBlock(version, 0, 1, 2 * version, text, 4)
    data = {"topics": [{"topic": "Tea", "text": text}], "count": 2.5, "open": None}
    records = [
        CompactionRecord(
            version=number,
            level=0,
            first_seq=1,
            last_seq=2 * number,
            trigger=("messages", 6, 6.0),
            replaced=(number - 1,) if number > 1 else (),
            tokens_before=20,
            tokens_after=4,
            text=text,
            structured=data,
            flags={"unsupported": [text]},
        )
        for number in range(1, version + 1)
    ]
    return ThreadMemory(version, (SummarySegment(block, "d" * 64),), tuple(records))


class StoreContract:
    """The tests of what the middleware expects of a store.

    Subclasses define how a store is made.
    """

    def make_store(self) -> MemoryStore:
        """Return a new, empty store."""
        raise NotImplementedError

    def reopen(self, store: MemoryStore) -> MemoryStore:
        """Open the same store as another process, or the next one, does."""
        return store

    def test_unknown_thread_has_an_empty_memory(self) -> None:
        store = self.make_store()
        assert [store.load(thread) for thread in THREADS] == [ThreadMemory()] * 5

    def test_store_loads_saved_memories(self) -> None:
        store = self.make_store()
        for number, thread in enumerate(THREADS, start=1):
            memory = make_memory(number, f"Summary {number}: 我叫小明 🦊\n</history>")
            memory = memory.add_failure(memory.records[-1], rest_until=1.7e9)
            assert store.save(thread, memory, seen=0) is True
            assert self.reopen(store).load(thread) == memory
        versions = [store.load(thread).version for thread in THREADS]
        assert versions == [2, 3, 4, 5, 6]

    def test_store_accepts_any_text(self) -> None:
        store = self.make_store()
        assert store.save("1", make_memory(1, HOSTILE), seen=0)
        stored = self.reopen(store).load("1")
        assert stored.version == 1
        # What cannot be stored may be replaced, but nothing else.
        assert HOSTILE.partition("\0")[0] in stored.blocks[0].text

    def test_store_accepts_a_long_memory(self) -> None:
        store = self.make_store()
        memory = make_memory(200, "word " * 400)
        assert store.save("1", memory, seen=0)
        assert self.reopen(store).load("1") == memory

    def test_store_replaces_the_seen_version(self) -> None:
        store = self.make_store()
        assert store.save("1", make_memory(1), seen=0)
        assert self.reopen(store).save("1", make_memory(2), seen=1)
        assert store.load("1") == make_memory(2)

    def test_store_rejects_memories_of_an_older_version(self) -> None:
        store = self.make_store()
        assert store.save("1", make_memory(2), seen=0)
        for seen in (0, 1, 3):
            late = make_memory(seen + 1, "late")
            assert self.reopen(store).save("1", late, seen=seen) is False
        assert store.load("1") == make_memory(2)

    def test_store_rejects_replacing_a_missing_memory(self) -> None:
        store = self.make_store()
        assert store.save("1", make_memory(3), seen=2) is False
        assert store.load("1") == ThreadMemory()

    def test_store_keeps_one_of_many_concurrent_saves(self) -> None:
        store = self.make_store()
        store.load("1")
        texts = [f"by {number}" for number in range(8)]
        with ThreadPoolExecutor(len(texts)) as threads:
            memories = [make_memory(1, text) for text in texts]
            saved = threads.map(lambda each: store.save("1", each, seen=0), memories)
            kept = [text for text, is_kept in zip(texts, saved, strict=True) if is_kept]
        assert [store.load("1").blocks[0].text] == kept

    def test_store_deletes_a_thread(self) -> None:
        store = self.make_store()
        for thread in ("1", "2"):
            assert store.save(thread, make_memory(1), seen=0)
        store.delete("1")
        store.delete("unknown")
        # A compaction that was under way does not bring it back.
        assert store.save("1", make_memory(2), seen=1) is False
        loaded = [self.reopen(store).load(thread).version for thread in ("1", "2")]
        assert loaded == [0, 1]

    def test_restart_repeats_no_summary_and_no_message(self) -> None:
        saver = InMemorySaver()
        store = self.make_store()
        read: list[str] = []
        for number in range(6):
            sent = self._talk(f"question {number}", saver, store, read)
            store = self.reopen(store)
        texts = [
            f"{who} {number}" for number in range(4) for who in ("question", "reply")
        ]
        assert [text for text in read if text in texts] == texts
        summary, *window = sent
        assert "<summary" in summary
        assert window == ["question 4", "reply 4", "question 5"]

    def _talk(
        self, text: str, saver: BaseCheckpointSaver, store: MemoryStore, read: list[str]
    ) -> list[str]:
        """Run one turn of a thread, with a new middleware, as after a restart.

        Returns the texts of its request; `read` gets those of the summariser.
        """

        def summarize(messages: list[BaseMessage]) -> str:
            read.extend(message.text for message in messages)
            return "They talked."

        model = _Model(responses=[text.replace("question", "reply")])
        with WindowpaneMiddleware(
            model,
            trigger=("messages", 6),
            keep=("messages", 2),
            summarizer=summarize,
            store=store,
            background=False,
        ) as memory:
            agent = create_agent(model, middleware=[memory], checkpointer=saver)
            said = {"messages": [("user", text)]}
            agent.invoke(said, {"configurable": {"thread_id": "1"}})
        return model.sent


class _Model(FakeListChatModel):
    """A model that keeps the texts of its request."""

    sent: list[str] = []

    def _call(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> str:
        self.sent = [message.text for message in messages]
        return super()._call(messages, *args, **kwargs)
