"""What the search in a conversation finds and costs, on SQLite and PostgreSQL.

First the sets of `bench.memory.search`, each conversation stored and asked through the
search that the site runs: the share of the evidence among the ten best hits, and how
many questions have other hits than the index in memory gives. Then processor time of
a search, of this process and of PostgreSQL's together, at two lengths: questions of six
words, rare and common as in the text, each once.
"""

import random
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import accumulate, count
from pathlib import Path
from statistics import fmean, median
from typing import Any

from . import databases

SIZES = (1_000, 100_000)
WORDS, ASKED, SEED = 30, 200, 1
VOCABULARY = 50_000
NOON = datetime(2026, 5, 3, 12, tzinfo=UTC)
NUMBERS = count(1)


def make_conversation(told: Sequence[tuple[str, str, datetime]]) -> Any:
    """Stored and indexed: roles, texts and times."""
    from django.contrib.auth import get_user_model
    from django.db.models import QuerySet

    from memory import transcript
    from memory.models import Message, RecallEntry
    from memory.search import recall

    owner = get_user_model().objects.create_user(f"bench-{next(NUMBERS)}")
    conversation = transcript.create_conversation(owner)
    for start in range(0, len(told), 1_000):
        rows = Message.objects.bulk_create(
            Message(conversation=conversation, seq=seq, role=role, text=text, tokens=1)
            for seq, (role, text, _) in enumerate(
                told[start : start + 1_000], start + 1
            )
        )
        for row, (_, _, at) in zip(rows, told[start:], strict=False):
            row.created_at = at
        # Past the code that guards stored rows.
        QuerySet(Message).bulk_update(rows, ["created_at"])
        RecallEntry.objects.bulk_create(
            RecallEntry(**recall.describe_entry(row)) for row in rows
        )
    return conversation


def ask_set(recordings: Sequence[Any]) -> tuple[float, int, int]:
    """The share of the evidence that is found, of how many questions, and how many of
    them have other hits in memory."""
    from memory.engine.search.archive import MessageIndex
    from memory.engine.search.ranking import Document
    from memory.evaluation.replay import RECALLED
    from memory.search import recall

    shares, others = [], 0
    for recording in recordings:
        told = [(m.role, m.content, m.created_at or NOON) for m in recording.messages]
        conversation = make_conversation(told)
        index = MessageIndex(
            Document.read(seq, *each) for seq, each in enumerate(told, start=1)
        )
        places = {each.id: n for n, each in enumerate(recording.messages, start=1)}
        for asked in recording.qa:
            evidence = {places[id_] for id_ in asked.evidence_ids if id_ in places}
            if evidence:
                options = {"limit": RECALLED, "at": told[-1][2]}
                hits = recall.recall_messages(conversation, asked.question, **options)
                others += hits != index.search(asked.question, **options)
                found = evidence.intersection(hit.seq for hit in hits)
                shares.append(len(found) / len(evidence))
    return fmean(shares), len(shares), others


def measure_size(size: int) -> list[float]:
    """Milliseconds of processor time of each search."""
    from memory.search import recall

    chance = random.Random(SEED)
    weights = [*accumulate(1 / rank for rank in range(1, VOCABULARY + 1))]
    words = [f"word{rank}x" for rank in range(VOCABULARY)]

    def talk(number: int) -> str:
        return " ".join(chance.choices(words, cum_weights=weights, k=number))

    roles = ("user", "assistant")
    conversation = make_conversation(
        [(roles[n % 2], talk(WORDS), NOON) for n in range(size)]
    )
    spent = []
    for _ in range(ASKED):
        question, started = talk(6), read_spent()
        recall.recall_messages(conversation, question, before_seq=size, at=NOON)
        spent.append(1000 * (read_spent() - started))
    return spent


def read_spent() -> float:
    """Seconds of processor time of this process, and of its PostgreSQL backend."""
    from django.db import connection

    spent = time.process_time()
    if connection.vendor == "postgresql":
        pid = connection.connection.info.backend_pid
        spent += int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    return spent


def report() -> None:
    from bench.memory.conversations import load
    from bench.memory.search import SETS

    sets = load() | {name: make() for name, make in SETS.items()}
    halves = {
        f"{name}, {half}": each[n::2]
        for name, each in sets.items()
        if name == "dev"
        for n, half in enumerate(("odd", "even"))
    }
    for name, recordings in (sets | halves).items():
        found, asked, others = ask_set(recordings)
        print(f"{name:20} {found:6.1%} of {asked:,}; {others} not as in memory")
    for size in SIZES:
        spent = sorted(measure_size(size))
        late = spent[len(spent) * 95 // 100]
        print(f"{size:7,} messages: {median(spent):.1f} ms, 95 % below {late:.1f}")


if __name__ == "__main__":
    databases.run("bench.conversation_search", report)
