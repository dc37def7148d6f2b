"""What the memory costs an agent for each call of its model: processor time of a whole
turn with one call, beside the same agent without a memory and with LangChain's. Threads
of 10, 100 and 1,000 messages. Prints milliseconds, medians of alternated rounds, and
what each memory adds.

    python -m bench.agents [messages ...]
"""

import random
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from memory.agents.middleware import WindowpaneMiddleware
from memory.agents.stores import InMemoryStore, MemoryStore, SQLiteStore
from memory.engine.policy import Policy

SIZES = (10, 100, 1000)
ROUNDS = 25
WORDS_EACH = 30
NEVER = ("tokens", 10_000_000)
WORDS = [f"word{n}x" for n in range(2000)]
QUESTION = HumanMessage("What did I say about word7x and word11x?")
THREAD = {"configurable": {"thread_id": "1"}}


def make_thread(size: int) -> list[BaseMessage]:
    rng = random.Random(size)
    kinds = (HumanMessage, AIMessage)
    texts = (" ".join(rng.choices(WORDS, k=WORDS_EACH)) for _ in range(size))
    return [kinds[n % 2](text, id=str(n)) for n, text in enumerate(texts)]


def make_model() -> FakeListChatModel:
    return FakeListChatModel(responses=["Yes."])


def windowpane(store: MemoryStore, **options: Any) -> WindowpaneMiddleware:
    # Every compaction, or the look whether one is due, is part of the turn.
    return WindowpaneMiddleware(
        make_model(),
        summarizer=lambda messages: "They talked about words. " * 40,
        store=store,
        background=False,
        **options,
    )


def measure(
    contestants: dict[str, Sequence[AgentMiddleware]], thread: list[BaseMessage]
) -> dict[str, float]:
    """Milliseconds of a turn of each, after one that may compact the thread."""
    agents = {
        name: create_agent(make_model(), middleware=middleware)
        for name, middleware in contestants.items()
    }
    times: dict[str, list[float]] = {name: [] for name in agents}
    for number in range(ROUNDS + 1):
        for name, agent in agents.items():
            said = {"messages": [*thread, QUESTION]}
            started = process_time()
            agent.invoke(said, THREAD)
            if number:
                times[name].append(1000 * (process_time() - started))
    return {name: statistics.median(taken) for name, taken in times.items()}


def main(sizes: Sequence[int]) -> None:
    with TemporaryDirectory() as folder:
        for size in sizes:
            store = SQLiteStore(Path(folder) / f"{size}.sqlite3")
            layered = Policy(recall_tokens=0)
            never = Policy(trigger=NEVER, keep=("tokens", 1000))
            contestants = {
                "no memory": (),
                "LangChain, nothing due": (
                    SummarizationMiddleware(make_model(), trigger=NEVER),
                ),
                "Windowpane, nothing due": (windowpane(InMemoryStore(), policy=never),),
                "Windowpane, layered": (windowpane(InMemoryStore()),),
                "the same without recall": (
                    windowpane(InMemoryStore(), policy=layered),
                ),
                "the same, SQLite": (windowpane(store),),
            }
            measured = measure(contestants, make_thread(size))
            bare = measured["no memory"]
            print(f"{size:,} messages")
            for name, taken in measured.items():
                print(f"  {name:26} {taken:7.2f} ms  {taken - bare:+7.2f}")
            store.close()


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or SIZES)
