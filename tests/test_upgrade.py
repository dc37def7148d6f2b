"""A database of an older release is migrated, and keeps every promise.

The files of tests/upgrade hold what two commits made, with their own code. 54ab517:
compactions, a message deleted after it was compacted, a branch, a retried and a waiting
turn, an experiment. 9c73ef29 (every_table): a row in each table of each app, and an
audit that was clean.
"""

import json
import lzma
import os
import random
import sqlite3
import time
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

import psycopg
import pytest

from . import plugin, warm_python
from .servers import ROOT, Site

FOLDER = Path(__file__).parent / "upgrade"
# Said in a message that was deleted, and in what was made of it.
WORD = "AKIA4711SECRET0"
# Of experiments, which were called trials of the review app then.
KIND = 24
# Seconds without an end of one migration, of which ten fit into the time of a test.
LONGEST = 100
# The turn that waited is taken as its first attempt; a stop lets the audit be clean.
LOOK = """
import json
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from chatsite.turns import lifecycle
from chatsite.turns.models import Turn
from chatsite.contrib.lab.experiments.models import Experiment
from memory.models import Message, Prompt, Summary
waiting = Turn.objects.get(state="queued")
claim = lifecycle.claim(waiting.conversation_id)
lifecycle.finish(claim, lifecycle.TurnResult("stopped", ""))
call_command("audit")
blanked = Summary.objects.filter(status="erased")
named = ContentType.objects.filter(model__in=["trial", "experiment"])
kinds = named.exclude(app_label="trials")
print(json.dumps({
    "messages": Message.objects.count(),
    "attempt": claim.attempt,
    "erased": [[row.text, row.structured, row.flags] for row in blanked],
    "stale": [row.text for row in Summary.objects.filter(status="stale")],
    "experiment": Experiment.objects.get().result,
    "kinds": [*kinds.values_list("pk", "app_label", "model")],
    "prompts of no one": Prompt.objects.filter(conversations=None).count(),
}))
"""
# Of SQLite, and of PostgreSQL.
SCHEMA = (
    ("SELECT type, tbl_name, name FROM sqlite_schema",),
    (
        "SELECT table_name, column_name, data_type, is_nullable, column_default "
        "FROM information_schema.columns WHERE table_schema = 'public'",
        "SELECT conrelid::regclass::text, conname, contype FROM pg_constraint "
        "WHERE connamespace = 'public'::regnamespace",
        "SELECT indrelid::regclass::text, indexrelid::regclass::text, indisvalid "
        "FROM pg_index JOIN pg_class ON pg_class.oid = indrelid "
        "WHERE relnamespace = 'public'::regnamespace",
        "SELECT tgrelid::regclass::text, tgname FROM pg_trigger WHERE NOT tgisinternal",
    ),
)


@contextmanager
def load(tmp_path, read_statements):
    """The URL of a database that the statements of this database system have made."""
    if plugin.cluster:
        plugin.cluster.start()
    with plugin.cluster.database() if plugin.cluster else nullcontext() as url:
        if url:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(read_statements("postgresql"))
        else:
            path = tmp_path / "old.sqlite3"
            with closing(sqlite3.connect(path)) as connection:
                connection.executescript(read_statements("sqlite"))
            url = f"sqlite:///{path}"
        yield url


@pytest.fixture
def old_url(tmp_path):
    """The URL of a database of the older release."""
    with load(tmp_path, lambda name: (FOLDER / f"{name}.sql").read_text()) as url:
        yield url


@pytest.fixture
def full_url(tmp_path):
    """The URL of a database with a row in each table."""

    def read_statements(name):
        packed = (FOLDER / f"every_table.{name}.sql.xz").read_bytes()
        return lzma.decompress(packed).decode()

    with load(tmp_path, read_statements) as url:
        yield url


def make_site(url, **settings):
    key = {"SECRET_KEY": "of-an-older-database", "SIGNING_KEY": ""}
    return Site({"DATABASE_URL": url, **key, **settings})


@pytest.fixture
def site(old_url):
    return make_site(old_url)


def test_upgraded_database_migrates_and_passes_its_audit(site):
    site.manage("migrate", "--verbosity", "0")
    check_all_is_there(site)


def check_all_is_there(site):
    # The command fails when the audit finds anything.
    text = site.manage("shell", "--no-imports", "-c", LOOK)
    found = json.loads(text.splitlines()[-1])
    before = (FOLDER / "sqlite.sql").read_text()
    assert WORD in before
    assert found["messages"] == 27
    assert found["attempt"] == 1
    assert found["prompts of no one"] == 0
    # Rights and log entries refer to it by its number.
    assert found["kinds"] == [[KIND, "experiments", "experiment"]]
    assert found["erased"]
    assert all(row == ["", None, {}] for row in found["erased"])
    assert WORD not in json.dumps([found["stale"], found["experiment"]])


# Each migration adds to these.
KEPT_BY_DJANGO = {"django_migrations", "django_content_type", "auth_permission"}
# With rows of these a site does not start that would not heed them.
NEEDED = "operators"


@pytest.mark.parametrize("extras", [NEEDED, "all"])
def test_rows_of_every_table_stay(full_url, extras):
    site = make_site(full_url, EXTRAS=extras)
    before = count_rows(full_url)
    assert 0 not in before.values()
    site.manage("migrate", "--verbosity", "0")
    after = count_rows(full_url)
    assert {name: after.get(name) for name in before} == before
    # It fails when it finds anything.
    site.manage("audit")
    said = site.manage("doctor")
    is_said = "Set EXTRAS=" in said
    assert is_said == (extras == NEEDED)


def count_rows(url):
    """Return the number of rows of each table."""
    tables = (
        "SELECT tbl_name FROM sqlite_schema WHERE name NOT LIKE 'sqlite%'",
        "SELECT tablename FROM pg_tables WHERE schemaname = 'public'",
    )[bool(plugin.cluster)]
    with connect(url) as opened:
        names = {name for (name,) in opened.execute(tables)} - KEPT_BY_DJANGO
        counted = {name: f"SELECT count(*) FROM {name}" for name in names}  # noqa: S608
        return {
            name: opened.execute(asked).fetchone()[0]
            for name, asked in counted.items()
            # Of the search index of SQLite, which migrations may make again.
            if "_fts" not in name
        }


def connect(url):
    if plugin.cluster:
        return closing(psycopg.connect(url, autocommit=True))
    return closing(sqlite3.connect(url.removeprefix("sqlite:///")))


def describe(url):
    """Return the structure of the database."""
    with connect(url) as opened:
        asked = SCHEMA[bool(plugin.cluster)]
        return {row for statement in asked for row in opened.execute(statement)}


def say_what_it_waits_for(opened, written):
    """Describe a migration that does not end: its output, and the work of
    the database.
    """
    columns = "pid, state, wait_event_type, wait_event, left(query, 200)"
    asked = f"SELECT {columns} FROM pg_stat_activity WHERE datname IS NOT NULL"  # noqa: S608
    rows = opened.execute(asked).fetchall() if plugin.cluster else []
    return "\n".join([written.read_text(), *map(str, rows)])


def test_killed_at_any_moment_it_goes_on_when_run_again(
    old_url, site, new_database, tmp_path
):
    seed = int(os.environ.get("SEED", random.randrange(10**6)))
    print("SEED", seed)  # noqa: T201 - to have the same moments again
    moments, kills = random.Random(seed), 0
    command = [str(ROOT / "manage.py"), "migrate", "--verbosity", "0"]
    written = tmp_path / "written"
    with written.open("wb") as output, connect(old_url) as opened:
        applied = "SELECT count(*) FROM django_migrations"
        while True:
            (count,) = opened.execute(applied).fetchone()
            until = count + moments.randint(0, 20)
            running = warm_python.start(command, site.environment(), output, output)
            latest = time.monotonic() + LONGEST
            while running.poll() is None and count < until:
                assert time.monotonic() < latest, say_what_it_waits_for(opened, written)
                time.sleep(0.02)
                (count,) = opened.execute(applied).fetchone()
            time.sleep(moments.uniform(0, 0.1))
            running.kill()
            if running.wait() == 0:
                break
            kills += 1
    assert kills > 2
    check_all_is_there(site)
    with new_database() as url:
        assert describe(old_url) == describe(url)
