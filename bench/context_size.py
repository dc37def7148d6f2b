"""What a long transcript costs: the context of a reply, the search behind its window,
a new message and a compaction, for 100 and for 100,000 messages, on SQLite and on
PostgreSQL. Prints milliseconds (median), queries, and the ratio long / short.

    python -m bench.context_size [sqlite|postgresql ...]
"""

import random
import statistics
from collections.abc import Callable, Iterator, Sequence

from . import databases

SIZES = (100, 100_000)
RUNS = 30
WINDOW = 40
# Word n is as frequent as words of a language are: about as 1 / n.
VOCABULARY = 20_000
WEIGHTS = [1 / (n + 10) for n in range(VOCABULARY)]
# Ending in x: no two of them have the same stem.
WORDS = [f"word{n}x" for n in range(VOCABULARY)]
INDEX_BYTES = {
    "sqlite": "SELECT sum(pgsize) FROM dbstat WHERE name LIKE '%memory_recall%'",
    "postgresql": "SELECT pg_total_relation_size('memory_recallentry')",
}


def texts(count: int) -> Iterator[str]:
    rng = random.Random(count)
    for _ in range(count):
        yield " ".join(rng.choices(WORDS, WEIGHTS, k=30))


def make(owner: object, size: int) -> object:
    """`size` messages in whole turns, all but the window compacted."""
    from memory import transcript, versions
    from memory.models import Conversation, Message, Summary
    from memory.search import recall

    conversation = transcript.create(owner, title=f"{size} messages")
    roles = (Message.Role.USER, Message.Role.ASSISTANT)
    rows = (
        Message(
            conversation=conversation,
            seq=seq,
            role=roles[(seq - 1) % 2],
            text=text,
            tokens=60,
        )
        for seq, text in enumerate(texts(size), start=1)
    )
    Message.objects.bulk_create(rows, batch_size=1000)
    recall.index_all()
    databases.analyse()
    versions.append(
        conversation,
        first_seq=1,
        last_seq=size - WINDOW,
        text="They talked.",
        status=Summary.Status.ACTIVE,
    )
    Conversation.objects.filter(pk=conversation.pk).update(next_seq=size + 1)
    conversation.refresh_from_db()
    return conversation


def measure(actions: Sequence[Callable[[], object]]) -> list[tuple[float, int]]:
    """Milliseconds (median) and most queries of each; in turns, so that both get the
    same share of what else the machine does."""
    times: list[list[float]] = [[] for _ in actions]
    for action in actions:
        action()
    for _ in range(RUNS):
        for action, taken in zip(actions, times, strict=True):
            taken += databases.measure(action, 1)
    medians = [statistics.median(taken) for taken in times]
    return list(zip(medians, map(count_queries, actions), strict=True))


def count_queries(action: Callable[[], object]) -> int:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    counts = []
    for _ in range(RUNS):
        with CaptureQueriesContext(connection) as queries:
            action()
        counts.append(len(queries))
    return max(counts)


def questions(conversation: object) -> Iterator[object]:
    """Always new ones of six words, rare and common as in the transcript."""
    from memory.models import Message

    rng = random.Random(1)
    while True:
        yield Message(
            conversation=conversation,
            seq=conversation.next_seq,
            role=Message.Role.USER,
            text=" ".join(rng.choices(WORDS, WEIGHTS, k=6)),
        )


def write(conversation: object) -> None:
    """Store a message of thirty words, index and all, and undo it."""
    from django.db import transaction

    from memory import transcript

    with transaction.atomic():
        text = next(texts(1))
        transcript.append_user_message(conversation, text=text, client_id="written")
        transaction.set_rollback(True)


def commit_summary(conversation: object) -> float:
    """Put a summary of the window in force, and undo it; milliseconds of the commit."""
    from django.db import transaction

    from memory.compaction import commit, lease, preparation
    from memory.engine.compaction import find_important
    from memory.engine.summaries.summarizer import SummaryText

    with transaction.atomic():
        lease.claim(conversation.pk, "bench", force=True)
        job = preparation.prepare(
            conversation.pk, "bench", lambda _: None, None, None, force=True
        )
        text = SummaryText("They talked.", "0" * 64, 1)
        important = find_important(job.policy, job.step)
        [taken] = databases.measure(lambda: commit.commit(job, "m", text, important), 1)
        transaction.set_rollback(True)
    return taken


def actions_on(conversation: object) -> dict[str, Callable[[], object]]:
    from memory import context
    from memory.search import recall

    asked = questions(conversation)
    common = "word0x word1x word2x word3x word4x word5x word6x word7x"
    long = " ".join(texts(1)) + " ".join(f"other{n}" for n in range(3000))
    return {
        "context, no recall": lambda: context.build(conversation),
        "context": lambda: context.build(conversation, newest=next(asked)),
        "search": lambda: recall.search(conversation, next(asked).text),
        "search, the commonest words": lambda: recall.search(conversation, common),
        "search, 30,000 characters": lambda: recall.search(conversation, long),
        "write a message": lambda: write(conversation),
        "compact, plan and commit": lambda: commit_summary(conversation),
    }


def index_bytes() -> int:
    """What the search index takes on disk, the words of its entries included."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(INDEX_BYTES[connection.vendor])
        return int(cursor.fetchone()[0])


def report() -> None:
    from django.contrib.auth import get_user_model

    owner = get_user_model().objects.create_user("bench")
    made = [make(owner, size) for size in SIZES]
    print(f"{SIZES[0]:,} and {SIZES[1]:,} messages")
    short_ones, long_ones = map(actions_on, made)
    for name, action in short_ones.items():
        (short, few), (long, many) = measure([action, long_ones[name]])
        print(
            f"{name:28} {short:6.1f} ms {long:6.1f} ms  ratio {long / short:5.2f}"
            f"  queries {few} and {many}"
        )
    commits = statistics.median(commit_summary(made[-1]) for _ in range(RUNS))
    print(f"commit alone: {commits:.1f} ms")
    print(f"search index: {index_bytes() / sum(SIZES):.0f} bytes a message")


if __name__ == "__main__":
    databases.run("bench.context_size", report)
