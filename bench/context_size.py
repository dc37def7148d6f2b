"""What a long transcript costs: the context of a reply, the search behind its window
and the commit of a fold, for 100 and for 100,000 messages.

Runs on a SQLite file of its own, or on the empty database of BENCH_DATABASE_URL. Prints
milliseconds (median), queries, and the ratio long / short.
"""

import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

folder = tempfile.TemporaryDirectory()
own = f"sqlite:///{Path(folder.name) / 'bench.sqlite3'}"
os.environ["DEBUG"] = "true"
os.environ["DATABASE_URL"] = os.environ.get("BENCH_DATABASE_URL", own)
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")

import django  # noqa: E402

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection, transaction  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402

from memory import context, fold_job, recall, transcript, versions  # noqa: E402
from memory.engine.summarizer import SummaryText  # noqa: E402
from memory.models import Conversation, Message, Summary  # noqa: E402

SIZES = (100, 100_000)
RUNS = 30
WINDOW = 40
# Word n is as frequent as words of a language are: about as 1 / n.
VOCABULARY = 20_000
WEIGHTS = [1 / (n + 10) for n in range(VOCABULARY)]
WORDS = [f"word{n}" for n in range(VOCABULARY)]


def texts(count: int) -> Iterator[str]:
    rng = random.Random(count)
    for _ in range(count):
        yield " ".join(rng.choices(WORDS, WEIGHTS, k=30))


@transaction.atomic
def make(owner: object, size: int) -> Conversation:
    """`size` messages in whole turns, all but the window folded."""
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


def measure(act: Callable[[], object]) -> tuple[float, int]:
    """Milliseconds and queries of one call."""
    act()
    times = []
    for _ in range(RUNS):
        started = time.perf_counter()
        act()
        times.append((time.perf_counter() - started) * 1000)
    with CaptureQueriesContext(connection) as queries:
        act()
    return statistics.median(times), len(queries)


def ask(conversation: Conversation, text: str) -> Message:
    client_id = f"ask-{conversation.next_seq}"
    message, _ = transcript.append_user_message(
        conversation, text=text, client_id=client_id
    )
    return message


def commit_fold(conversation: Conversation) -> None:
    """The transaction that puts a summary of the window in force, undone again."""
    rows = Conversation.objects.filter(pk=conversation.pk)
    rows.update(fold_owner="bench")
    job = fold_job.prepare(conversation.pk, "bench", lambda _: None, None, force=True)
    with transaction.atomic():
        started = time.perf_counter()
        fold_job.commit(job, "m", SummaryText("They talked.", "0" * 64, 1))
        COMMITS.append((time.perf_counter() - started) * 1000)
        transaction.set_rollback(True)


COMMITS: list[float] = []


def acts(conversation: Conversation) -> dict[str, Callable[[], object]]:
    rare = ask(conversation, "What of word421, word134, word77 and word222?")
    common = "word0 word1 word2 word3 word4 word5 word6 word7"
    long = " ".join(texts(1)) + " ".join(f"other{n}" for n in range(3000))
    return {
        "context, no recall": lambda: context.build(conversation),
        "context": lambda: context.build(conversation, newest=rare),
        "search": lambda: recall.search(conversation, rare.text),
        "search, common words": lambda: recall.search(conversation, common),
        "search, 30,000 characters": lambda: recall.search(conversation, long),
    }


def main() -> None:
    call_command("migrate", verbosity=0)
    owner = get_user_model().objects.create_user(f"bench{time.time_ns()}")
    results: dict[str, list[tuple[float, int]]] = {}
    for size in SIZES:
        conversation = make(owner, size)
        for name, act in acts(conversation).items():
            results.setdefault(name, []).append(measure(act))
        COMMITS.clear()
        _, queries = measure(lambda each=conversation: commit_fold(each))
        row = (statistics.median(COMMITS), queries)
        results.setdefault("fold commit (queries: with its plan)", []).append(row)
    print(f"{connection.vendor}; {SIZES[0]:,} and {SIZES[1]:,} messages")
    for name, ((short, few), (long, many)) in results.items():
        print(
            f"{name:38} {short:6.1f} ms {long:6.1f} ms  ratio {long / short:5.2f}"
            f"  queries {few} and {many}"
        )


if __name__ == "__main__":
    main()
    folder.cleanup()
