"""What the figures on the admin's first page cost: 100,000 summaries and 1,000,000
model calls of 200 people, spread over a year, on SQLite and on PostgreSQL. Prints
milliseconds, the median of 5, without the minute's cache; then the page with it.

    python -m bench.charts [sqlite|postgresql ...]
"""

import itertools
import random
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta

from . import databases

RUNS = 5
PEOPLE, CONVERSATIONS, SUMMARIES, CALLS = 200, 2_000, 100_000, 1_000_000
YEAR = timedelta(days=365)
BATCH = 20_000
TEXT = "- They pay 450 euros on 12 May; Anna wants the harbour, not the station.\n" * 28


def insert(model: type, rows: Iterable[dict]) -> None:
    """Plain inserts: a million objects with a signature each would take ten minutes."""
    from django.db import connection, transaction

    rows = iter(rows)
    first = next(rows)
    table, columns = model._meta.db_table, ", ".join(first)
    values = (tuple(row.values()) for row in itertools.chain([first], rows))
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
                for row in values:
                    copy.write_row(row)
            return
        marks = ", ".join(["%s"] * len(first))
        sql = f"INSERT INTO {table} ({columns}) VALUES ({marks})"  # noqa: S608
        while batch := list(itertools.islice(values, BATCH)):
            cursor.executemany(sql, batch)


def times(count: int, end: datetime) -> Iterator[str]:
    """Evenly over the year, as the database takes them."""
    from django.db import connection

    for n in range(count):
        at = end - YEAR * (count - n) / count
        yield connection.ops.adapt_datetimefield_value(at)


def fill() -> None:
    from django.contrib.auth import get_user_model
    from django.utils import timezone

    from memory.models import Conversation, ModelCall, Summary

    random.seed(7)
    User = get_user_model()  # noqa: N806
    people = User.objects.bulk_create(User(username=f"p{n:03}") for n in range(PEOPLE))
    made = Conversation.objects.bulk_create(
        Conversation(owner=people[n % PEOPLE]) for n in range(CONVERSATIONS)
    )
    now = timezone.now()
    begun = now - 2 * YEAR
    Conversation.objects.update(created_at=begun)
    insert(Summary, summaries([row.pk for row in made], now))
    insert(ModelCall, calls([row.pk for row in made], now))
    databases.analyse()


def summaries(ids: list[int], now: datetime) -> Iterator[dict]:
    for n, at in enumerate(times(SUMMARIES, now)):
        version = n // CONVERSATIONS + 1
        failed = n % 23 == 0
        yield {
            "conversation_id": ids[n % CONVERSATIONS],
            "version": version,
            "level": 0,
            "generation": 1,
            "first_seq": 20 * version - 19,
            "last_seq": 20 * version,
            "text": "" if failed else TEXT,
            "flags": "{}",
            "trigger": '{"kind": "tokens", "value": 4100, "limit": 4000}',
            "policy_hash": "0" * 64,
            "preset": "layered",
            "prompt_hash": "",
            "model": "m",
            "tokens_in": 4000,
            "tokens_out": 400,
            "tokens_before": 4000,
            "tokens_after": random.randint(900, 2400),
            "ms": random.randint(500, 9000),
            "status": "failed" if failed else "active",
            "error": "timeout" if failed else "",
            "created_at": at,
        }


def calls(ids: list[int], now: datetime) -> Iterator[dict]:
    for n, at in enumerate(times(CALLS, now)):
        yield {
            "conversation_id": ids[n * 7 % CONVERSATIONS],
            "purpose": "summary" if n % 10 == 0 else "reply",
            "refs": "{}",
            "sha256": "0" * 64,
            "model": f"model-{n % 3}",
            "tokens_estimated": 3000,
            "tokens_input": random.randint(400, 5000) if n % 4 else None,
            "tokens_cached": None,
            "tokens_output": random.randint(20, 600) if n % 4 else None,
            "first_token_ms": random.randint(150, 1500),
            "total_ms": random.randint(800, 20_000),
            "attempts": 1,
            "error": "timeout" if n % 200 == 0 else "",
            "created_at": at,
        }


def show(name: str, action: Callable[[], object]) -> None:
    times = databases.measure(action, RUNS)
    print(f"{name:44} {statistics.median(times):7.0f} ms, at most {max(times):.0f}")


def report() -> None:
    from django.contrib.auth import get_user_model
    from django.core.cache import cache
    from django.test import Client

    from chatsite.review.charts import site_metrics
    from chatsite.review.charts.days import Days

    started = time.perf_counter()
    fill()
    print(f"filled in {time.perf_counter() - started:.0f} s")
    for count in (7, 30, 90):
        days = Days.until_today(count)
        show(f"figures of {count} days", lambda days=days: site_metrics.measure(days))
    client = Client()
    client.force_login(
        get_user_model().objects.create_superuser("staff"),
        backend="django.contrib.auth.backends.ModelBackend",
    )
    client.get("/admin/")
    show("the admin's first page, within a minute", lambda: client.get("/admin/"))

    def a_minute_later() -> None:
        today = Days.until_today(1).last
        cache.delete(f"site-figures-{today}-{today}")
        client.get("/admin/")

    show("the admin's first page, a minute later", a_minute_later)


if __name__ == "__main__":
    databases.run("bench.charts", report)
