"""What a search over all of a person's conversations costs: 10,000 messages in 250 of
them, on SQLite, or on BENCH_DATABASE_URL. Prints milliseconds, the median of 7.
"""

import os
import statistics
import tempfile
import time
from pathlib import Path

folder = tempfile.TemporaryDirectory()
os.environ["DEBUG"] = "true"
os.environ["DATABASE_URL"] = os.environ.get(
    "BENCH_DATABASE_URL", f"sqlite:///{Path(folder.name) / 'bench.sqlite3'}"
)
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")

import django  # noqa: E402

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402
from django.core.management import call_command  # noqa: E402

from memory.models import Conversation, Message, RecallEntry  # noqa: E402
from memory.search import conversation_search, recall  # noqa: E402

RUNS = 7
CONVERSATIONS, MESSAGES = 250, 10_000
QUERIES = ("harbour nothing", "w17", "word3 word5 word7", "zz9", "鸭川")


def plant(user: object) -> None:
    rows = Conversation.objects.bulk_create(
        Conversation(owner=user, title=f"w{n}") for n in range(CONVERSATIONS)
    )
    written = Message.objects.bulk_create(
        Message(
            conversation=rows[n % CONVERSATIONS],
            seq=n // CONVERSATIONS + 1,
            role=Message.Role.USER,
            text=" ".join(f"word{n * k % 97}" for k in range(1, 60)) + f" w{n}",
            tokens=1,
        )
        for n in range(MESSAGES)
    )
    entries = [RecallEntry(**recall.describe(row)) for row in written]
    RecallEntry.objects.bulk_create(entries)


def search_ms(user: object, query: str) -> float:
    started = time.perf_counter()
    conversation_search.find_messages(user, query)
    list(conversation_search.find_titles(user, query))
    return (time.perf_counter() - started) * 1000


def main() -> None:
    call_command("migrate", verbosity=0)
    user = get_user_model().objects.create_user("bench")
    plant(user)
    for query in QUERIES:
        times = [search_ms(user, query) for _ in range(RUNS)]
        print(
            f"{query:20} {statistics.median(times):6.0f} ms, at most {max(times):.0f}"
        )


if __name__ == "__main__":
    main()
