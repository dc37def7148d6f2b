import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from langgraph.store.memory import InMemoryStore as InMemoryBaseStore

from memory.agents.stores import (
    InMemoryStore,
    LangGraphStore,
    SQLiteStore,
    ThreadMemory,
)
from memory.agents.testing import StoreContract, make_memory


class TestInMemoryStore(StoreContract):
    def make_store(self):
        return InMemoryStore()


class TestLangGraphStore(StoreContract):
    def make_store(self):
        return LangGraphStore(InMemoryBaseStore())

    def reopen(self, store):
        return LangGraphStore(store.store)

    def test_store_leaves_other_items_alone(self):
        base = InMemoryBaseStore()
        base.put(("windowpane", "notes"), "1", {"text": "mine"})
        store = LangGraphStore(base, namespace=("windowpane", "threads"))
        store.save("1", make_memory(1), seen=0)
        store.delete("1")
        assert base.get(("windowpane", "notes"), "1").value == {"text": "mine"}

    def test_store_replaces_an_unreadable_memory(self):
        store = self.make_store()
        store.store.put(store.namespace, "1", {"version": 7, "segments": "broken"})
        assert store.load("1") == ThreadMemory(version=7)
        assert store.save("1", make_memory(8), seen=7)
        assert store.load("1") == make_memory(8)


class TestSQLiteStore(StoreContract):
    @pytest.fixture(autouse=True)
    def _use(self, tmp_path):
        self.path = tmp_path / "threads.sqlite3"
        self.opened = []
        yield
        for store in self.opened:
            store.close()

    def make_store(self):
        self.opened.append(SQLiteStore(self.path))
        return self.opened[-1]

    def reopen(self, store):
        return self.make_store()

    def test_store_keeps_one_of_many_saves_through_own_connections(self):
        stores = [self.make_store() for _ in range(8)]
        start = threading.Barrier(len(stores))

        def save(store, number):
            start.wait(10)
            return store.save("1", make_memory(1, str(number)), seen=0)

        with ThreadPoolExecutor(len(stores)) as threads:
            saved = list(threads.map(save, stores, range(8)))
        assert saved.count(True) == 1
        assert stores[0].load("1").blocks[0].text == str(saved.index(True))

    def test_store_raises_for_a_broken_file(self):
        self.path.write_text("This is no database." * 100)
        with pytest.raises(sqlite3.DatabaseError):
            self.make_store()
