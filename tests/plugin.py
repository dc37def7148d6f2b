"""Loaded by pytest before Django reads its settings: puts the environment in place.

TEST_DATABASE chooses sqlite (default) or postgresql. The PostgreSQL cluster itself
starts only when a test needs the database.
"""

import gc
import os
import time
from pathlib import Path

import pytest

from . import streams, totals
from .databases import Postgres
from .unsteady import Recorder

ENVIRONMENT = {
    # A developer's .env is not the tests' business.
    "ENV_FILE": "",
    "DEBUG": "true",
    "SECRET_KEY": "only-for-tests",
    "ALLOWED_HOSTS": "127.0.0.1,localhost,testserver",
    "SITE_ORIGINS": "",
    "SITE_HTTPS": "false",
    "EXTRAS": "all",
    "SIGNUP_ENABLED": "true",
    "BEHIND_PROXY": "false",
    "TIME_ZONE": "UTC",
    "REDIS_URL": "",
    "OPENAI_API_KEY": "",
    "OPENAI_BASE_URL": "",
    "CHAT_MODEL": "",
    "SUMMARY_MODEL": "",
    "CONTEXT_WINDOW": "0",
    "DEMO_TOKENS_PER_SECOND": "0",
    "LANGSMITH_TRACING": "false",
    # A request of its own after the first reply, which few tests are about.
    "TITLES_ENABLED": "false",
}
DATABASES = ("sqlite", "postgresql")

database = os.environ.get("TEST_DATABASE") or "sqlite"
if database not in DATABASES:
    raise RuntimeError(f"TEST_DATABASE is {database!r}, expected one of {DATABASES}.")

cluster = Postgres() if database == "postgresql" else None
began = time.time()
# Taken from the environment, as tests run pytest too.
totals_folder = os.environ.pop("TEST_TOTALS", "")

os.environ.update(ENVIRONMENT)
# Next to nothing becomes garbage while files are imported and tests collected, and
# looking for it takes a quarter of that time.
gc.disable()

# With SQLite the tests name their file later; this one is never opened.
os.environ["DATABASE_URL"] = cluster.url() if cluster else "sqlite:///unused.sqlite3"


def pytest_configure(config: pytest.Config) -> None:
    """Taken from the environment, as tests run pytest too."""
    folder = os.environ.pop("TEST_FAILURES", "")
    if folder and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(Path(folder), database))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files without tests for this run are not even imported."""
    is_module = collection_path.suffix == ".py"
    if is_module and not streams.can_have(collection_path, config.option.markexpr):
        return True
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Tests that need one database belong to the run on that database only. Files with
    slow ones come first: at the end of a run they would leave a core without work."""
    for item in items:
        streams.mark(item, database)
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
    others = [item for item in items if not _belongs(item)]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if _belongs(item)]


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Freeze the imported objects.

    Looking through all of them for garbage, again and again, takes four hundredths of
    the time of a run, and through the rest after every 700 objects another eight.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()


def _belongs(item: pytest.Item) -> bool:
    mark = item.get_closest_marker("database")
    return mark is None or mark.args == (database,)


def pytest_report_header() -> str:
    return f"database: {database}"


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Note what ran. In CI a skipped test is a failure, because it would not be
    noticed."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter and totals_folder:
        totals.note_run(Path(totals_folder), database, began, reporter.stats)
    skipped = reporter.stats.get("skipped", []) if reporter else []
    if skipped and os.environ.get("CI") == "true":
        reporter.write_line(f"CI: {len(skipped)} skipped tests count as failed.")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_unconfigure() -> None:
    if cluster:
        cluster.stop(show_log=False)
