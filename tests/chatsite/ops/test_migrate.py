"""manage.py migrate beside processes that serve: it gives way, and comes again."""

import threading
from io import StringIO

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.state import ModelState

from chatsite.ops.management.commands import migrate
from tests.patience import PATIENCE, wait_for

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.database("postgresql"),
]
# Makes a table that refers to conversations first and to messages then.
BEFORE, NAME = "0020_share", "0021_feedback"
WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"
WRITERS = 4
TOUCH = "UPDATE memory_{} SET id = id WHERE id < 0"


@pytest.fixture
def older():
    """The database as it was before the migration."""
    executor = MigrationExecutor(connection)
    executor.migrate([("chat", BEFORE)])
    yield
    executor.loader.build_graph()
    executor.migrate(executor.loader.graph.leaf_nodes())


def connect_as_the_site():
    values = connection.settings_dict
    return psycopg.connect(
        host=values["HOST"],
        port=values["PORT"],
        user=values["USER"],
        dbname=values["NAME"],
        options=values["OPTIONS"]["options"],
    )


@pytest.fixture
def serving():
    """A connection as the site has them."""
    with connect_as_the_site() as made:
        yield made


@pytest.fixture
def migration():
    """A thread that migrates, what it has printed, and how it failed."""
    printed, failed = StringIO(), []

    def run():
        try:
            call_command("migrate", stdout=printed)
        except (OperationalError, CommandError) as error:
            failed.append(error)
        finally:
            connection.close()

    yield threading.Thread(target=run), printed
    assert failed == []
    done = MigrationExecutor(connection).loader.applied_migrations
    assert ("chat", NAME) in done


def wait_for_waiting(count):
    with connection.cursor() as cursor:
        wait_for(
            lambda: cursor.execute(WAITING).fetchone()[0] >= count, what="the waiting"
        )


def test_two_that_wait_for_each_other_both_come_through(older, serving, migration):
    """The request holds what the migration needs and then wants what it holds."""
    thread, printed = migration
    serving.execute(TOUCH.format("message"))
    thread.start()
    wait_for_waiting(1)
    serving.execute(TOUCH.format("conversation"))
    serving.commit()
    thread.join(60 * PATIENCE)
    assert "trying again" in printed.getvalue()


def test_a_request_that_stood_in_line_behind_it_is_no_victim(older, serving, migration):
    """The request has waited longer than the migration for the next table, and
    PostgreSQL ends the one that has waited for a second.
    """
    thread, _printed = migration
    with connect_as_the_site() as first:
        first.execute(TOUCH.format("conversation"))
        thread.start()
        wait_for_waiting(1)
        serving.execute(TOUCH.format("message"))
        free = threading.Timer(0.7, first.commit)
        free.start()
        serving.execute(TOUCH.format("conversation"))
        serving.commit()
        free.join()
    thread.join(60 * PATIENCE)


def test_a_site_under_load_notices_nothing(older):
    """Others write all the time, as replies do: none of them is turned away, whether by
    a deadlock or by a lock that it waits for in vain."""
    made, errors = [], []
    ended = threading.Event()

    def write(number):
        try:
            with connect_as_the_site() as own:
                while not ended.is_set():
                    # As the site does: the conversation first, then what is in it.
                    own.execute(TOUCH.format("conversation"))
                    own.execute(TOUCH.format("message"))
                    own.commit()
                    made.append(number)
        except psycopg.Error as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=[n]) for n in range(WRITERS)]
    for thread in threads:
        thread.start()
    wait_for(lambda: len({*made}) == WRITERS, what="all writers")
    call_command("migrate", verbosity=0)
    before = len(made)
    wait_for(lambda: len(made) > before + WRITERS, what="writes afterwards")
    ended.set()
    for thread in threads:
        thread.join(60 * PATIENCE)
    assert errors == []
    assert ("chat", NAME) in MigrationExecutor(connection).loader.applied_migrations


def test_models_are_not_put_together_while_tables_are_locked(older, monkeypatch):
    """Building the models takes most of the time of a migration, in which users could
    not write.
    """
    rendered = []
    render = ModelState.render

    def note(state, apps):
        rendered.append((connection.in_atomic_block, state.name))
        return render(state, apps)

    monkeypatch.setattr(ModelState, "render", note)
    call_command("migrate", verbosity=0)
    assert len(rendered) > 10
    assert [name for is_locked, name in rendered if is_locked] == []


def test_migrate_says_what_to_do_when_a_lock_is_never_free(older, serving, monkeypatch):
    monkeypatch.setattr(migrate, "TRIES", 2)
    # Two tries can take a busy machine longer than a request may be idle.
    serving.execute("SET idle_in_transaction_session_timeout = 0")
    serving.execute(TOUCH.format("message"))
    with pytest.raises(CommandError, match="run the command again"):
        call_command("migrate", verbosity=0)
    serving.commit()
    call_command("migrate", verbosity=0)
