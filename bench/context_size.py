"""What a long transcript costs: the context of a reply, the search behind its window,
a new message and a compaction, for 100 and for 100,000 messages.

Runs on a SQLite file of its own, or on the empty database of BENCH_DATABASE_URL. Prints
milliseconds (median), queries, and the ratio long / short.
"""

import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

folder = tempfile.TemporaryDirectory()
own = f"sqlite:///{Path(folder.name) / 'bench.sqlite3'}"
os.environ.setdefault("DEBUG", "true")
os.environ["DATABASE_URL"] = os.environ.get("BENCH_DATABASE_URL", own)
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")

import django  # noqa: E402

django.setup()

from django.conf import settings  # noqa: E402
from django.contrib.auth import get_user_model  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection, transaction  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402

from memory import context, transcript, versions  # noqa: E402
from memory.compaction import commit, preparation  # noqa: E402
from memory.engine.summaries.summarizer import SummaryText  # noqa: E402
from memory.models import Conversation, Message, Summary  # noqa: E402
from memory.search import recall  # noqa: E402

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


def make(owner: object, size: int) -> Conversation:
    """`size` messages in whole turns, all but the window compacted."""
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
    # A server does it by itself, some time after so many rows were written.
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
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


def measure(acts: Sequence[Callable[[], object]]) -> list[tuple[float, int]]:
    """Milliseconds (median) and most queries of each; in turns, so that both get the
    same share of what else the machine does."""
    times: list[list[float]] = [[] for _ in acts]
    for act in acts:
        act()
    for _ in range(RUNS):
        for act, taken in zip(acts, times, strict=True):
            started = time.perf_counter()
            act()
            taken.append((time.perf_counter() - started) * 1000)
    medians = [statistics.median(taken) for taken in times]
    return list(zip(medians, map(count_queries, acts), strict=True))


def count_queries(act: Callable[[], object]) -> int:
    counts = []
    for _ in range(RUNS):
        with CaptureQueriesContext(connection) as queries:
            act()
        counts.append(len(queries))
    return max(counts)


def questions(conversation: Conversation) -> Iterator[Message]:
    """Ever new ones of six words, rare and common as in what was said."""
    rng = random.Random(1)
    while True:
        yield Message(
            conversation=conversation,
            seq=conversation.next_seq,
            role=Message.Role.USER,
            text=" ".join(rng.choices(WORDS, WEIGHTS, k=6)),
        )


@transaction.atomic
def write(conversation: Conversation) -> None:
    """Store a message of thirty words, index and all, and undo it."""
    text = next(texts(1))
    transcript.append_user_message(conversation, text=text, client_id="written")
    transaction.set_rollback(True)


@transaction.atomic
def commit_summary(conversation: Conversation) -> float:
    """Put a summary of the window in force, and undo it; milliseconds of the commit."""
    Conversation.objects.filter(pk=conversation.pk).update(compaction_owner="bench")
    job = preparation.prepare(
        conversation.pk, "bench", lambda _: None, None, force=True
    )
    started = time.perf_counter()
    commit.commit(job, "m", SummaryText("They talked.", "0" * 64, 1))
    taken = (time.perf_counter() - started) * 1000
    transaction.set_rollback(True)
    return taken


def acts(conversation: Conversation) -> dict[str, Callable[[], object]]:
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
    with connection.cursor() as cursor:
        cursor.execute(INDEX_BYTES[connection.vendor])
        return int(cursor.fetchone()[0])


def main() -> None:
    # With DEBUG, Django keeps a log of all queries.
    settings.DEBUG = False
    call_command("migrate", verbosity=0)
    owner = get_user_model().objects.create_user(f"bench{time.time_ns()}")
    made = [make(owner, size) for size in SIZES]
    print(f"{connection.vendor}; {SIZES[0]:,} and {SIZES[1]:,} messages")
    for name, *same in zip(acts(made[0]), *(acts(c).values() for c in made), strict=1):
        (short, few), (long, many) = measure(same)
        print(
            f"{name:28} {short:6.1f} ms {long:6.1f} ms  ratio {long / short:5.2f}"
            f"  queries {few} and {many}"
        )
    commits = statistics.median(commit_summary(made[-1]) for _ in range(RUNS))
    print(f"commit alone: {commits:.1f} ms")
    print(f"search index: {index_bytes() / sum(SIZES):.0f} bytes a message")


if __name__ == "__main__":
    main()
    folder.cleanup()
