"""Fixtures shared by all tests: the database, people, the fake model provider."""

import importlib
import sqlite3
import ssl
import uuid
from contextlib import ExitStack, closing, nullcontext
from functools import cache, partial

import pytest
from django.contrib.auth import get_user_model
from django.db import connection, connections, transaction
from django.db.migrations.executor import MigrationExecutor
from django.test import TransactionTestCase
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from chatsite.llm import dialects, providers
from chatsite.ops import processor_time

from . import migrating, plugin
from .databases import MIGRATED, copy_sqlite
from .fakes.upstream import Upstream
from .remembered import remembered
from .servers import Redis, Site
from .wire_proofs import find_unproved

# An example is not slow because the machine is.
hypothesis_settings.register_profile(
    "busy", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
hypothesis_settings.load_profile("busy")


def pytest_configure(config):
    from django.conf import settings

    # Argon2 takes a tenth of a second per user, which is its purpose.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def pytest_collection_modifyitems(items):
    """Browser tests come last: Playwright keeps an event loop running in this thread
    as long as its browser lives, and async tests can't start theirs beside it."""
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Whatever a test has had sent to the fake provider, its record proves, unless the
    test is marked as one that changes records."""
    result = yield
    server = item.funcargs.get("upstream")
    has_rows = {"db", "transactional_db"} & {*item.fixturenames}
    is_kept = item.get_closest_marker("changes_records") is None
    if has_rows and is_kept and isinstance(server, Upstream):
        assert find_unproved([request.raw for request in server.requests]) == []
    return result


@pytest.fixture(scope="session")
def django_db_setup(django_test_environment, tmp_path_factory):
    """The database of this process: a copy, in the place of migrating."""
    settings_dict = connections["default"].settings_dict
    with ExitStack() as stack:
        if plugin.cluster:
            plugin.cluster.start()
            settings_dict["NAME"] = "tests"
            plugin.cluster.execute("CREATE DATABASE {} TEMPLATE {}", "tests", MIGRATED)
        else:
            # Threads do not see each other's transactions right in memory.
            path = tmp_path_factory.mktemp("database") / "test.sqlite3"
            copy_sqlite(path)
            settings_dict["NAME"] = str(path)
            settings_dict["OPTIONS"]["init_command"] += "PRAGMA synchronous=OFF;"
            # A connection that the thread of turns kept would outlive its test.
            settings_dict["CONN_MAX_AGE"] = 0
            # The last connection that closes writes all back, so one stays open.
            keeper = stack.enter_context(closing(sqlite3.connect(path)))
            keeper.execute("SELECT count(*) FROM sqlite_schema")
        yield


@pytest.fixture(scope="session")
def new_database(tmp_path_factory):
    """new_database() -> a context manager: the DATABASE_URL of a fresh, migrated
    database for server processes."""
    if plugin.cluster:
        plugin.cluster.start()
        return partial(plugin.cluster.database, template=MIGRATED)
    folder = tmp_path_factory.mktemp("servers")
    return lambda: nullcontext(copy_sqlite(folder / f"{uuid.uuid4().hex}.sqlite3"))


KEPT = {"auth_permission", "django_content_type"}


def empty_tables(case):
    """Empty the tables that a test with transactions of its own has written, without
    the rows of migrations. Django truncates every table and makes all permissions
    again, which takes a tenth of a second, and four on PostgreSQL.
    """
    tables = connection.introspection.django_table_names(only_existing=True)
    names = [connection.ops.quote_name(name) for name in {*tables} - KEPT]
    checks = [f"EXISTS (SELECT 1 FROM {name})" for name in names]  # noqa: S608
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(checks)}")
        for name, is_filled in zip(names, cursor.fetchone(), strict=True):
            if is_filled:
                cursor.execute(f"DELETE FROM {name}")  # noqa: S608


@pytest.fixture(scope="session", autouse=True)
def quick_ends():
    """Tables are emptied, migrations taken back and authorities read in the quickest
    way that there is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", empty_tables)
        patch.setattr(MigrationExecutor, "_migrate_all_backwards", migrating.unapply)
        # Every client of a model reads the list of authorities, which takes 30 ms.
        patch.setattr(ssl, "create_default_context", cache(ssl.create_default_context))
        yield


@pytest.fixture(scope="session")
def redis_server():
    with Redis() as server:
        yield server


@pytest.fixture
def start_site(new_database):
    """start_site(port=None, **env) -> Site: the site as a process.

    Sites of one test share its database. All are stopped when the test ends.
    """
    with new_database() as url, ExitStack() as stack:

        def start(port=None, **env):
            site = Site({"DATABASE_URL": url, **env}, port)
            stack.callback(site.stop)
            return site.start()

        yield start


@pytest.fixture
@remembered
def alice(db):
    return get_user_model().objects.create_user("alice", password="alice-secret")


@pytest.fixture
@remembered
def bob(db):
    return get_user_model().objects.create_user("bob", password="bob-secret")


@pytest.fixture
@remembered
def staff(db):
    return get_user_model().objects.create_superuser("staff", password="staff-secret")


@pytest.fixture(autouse=True)
def fresh_models():
    """A model remembers the settings it was built with, and what its provider refused;
    no test may inherit one."""
    providers.build.cache_clear()
    dialects._known.clear()
    yield
    providers.build.cache_clear()


@pytest.fixture(autouse=True)
def fresh_accounts():
    """Reset the processor time of all accounts before a test."""
    processor_time._accounts.clear()


@pytest.fixture(scope="module")
def provider():
    """A fake model provider for the sites of a file."""
    with Upstream() as server:
        yield server


@pytest.fixture
def upstream(settings):
    """A fake model provider on loopback, and settings that point to it."""
    # Takes seconds the first time, which no test of a socket should wait for.
    importlib.import_module("langchain_openai")
    with Upstream() as server:
        settings.OPENAI_BASE_URL = server.url
        settings.OPENAI_API_KEY = "sk-test-SECRET"
        settings.CHAT_MODEL = "ok"
        providers.build.cache_clear()
        yield server
