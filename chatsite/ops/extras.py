"""Rows of apps that EXTRAS does not name."""

import logging
import sys
from collections.abc import Iterable, Iterator, Mapping

from django.conf import settings
from django.db import connection

from memory.database import TROUBLE

logger = logging.getLogger(__name__)

# Tables that people or staff fill, by the name in EXTRAS. The apps themselves are not
# imported while they are off.
TABLES = {
    "endpoint": ("endpoint_apikey", "endpoint_clientconversation"),
    "evidence": ("evidence_signingkey", "evidence_signedfile"),
    "lab": (
        "examples_example",
        "trials_trial",
        "desk_experiment",
        "experiments_sample",
    ),
    "organisation": ("signin_membership",),
    "operators": (
        "announcements_announcement",
        "budgets_budget",
        "switches_switchedoff",
    ),
    "quiz": ("quiz_guesscount",),
}

# Those with rows that hold people back, and which do: without their app they would not.
LIMITS = {"budgets_budget": "amount >= 0", "switches_switchedoff": "on_at IS NULL"}

# Settings that only they read.
SETTINGS = {
    "endpoint": ("MCP_SERVER_ENABLED", "GATEWAY_JWT_SECRET", "GATEWAY_USER_HEADER"),
    "mcp": ("MCP_SERVERS",),
    "operators": ("OTEL_EXPORTER_OTLP_ENDPOINT",),
    "web": ("WEB_SEARCH", "WEB_PAGES_ENABLED"),
}


def find_unused_settings() -> Iterator[str]:
    """Yield a sentence on each setting of an app that EXTRAS does not name."""
    for extra, names in SETTINGS.items():
        for name in names:
            if extra not in settings.EXTRAS and getattr(settings, name):
                yield f"{name} is set, and EXTRAS lacks {extra}, which reads it."


def find_unnamed_extras() -> list[str]:
    """Return the names that EXTRAS lacks although the database has rows of their apps.

    It takes two statements at most. Errors of the database are raised.
    """
    missing = [name for name in TABLES if name not in settings.EXTRAS]
    if not missing:
        return []
    known = {*connection.introspection.table_names()}
    return [name for name in missing if _has_rows(known.intersection(TABLES[name]))]


def describe_unnamed_extras() -> str:
    """Return a sentence on the apps and what to do; "" where there are none."""
    names = find_unnamed_extras()
    if not names:
        return ""
    every = ",".join(
        name for name in settings.CONTRIB if name in settings.EXTRAS or name in names
    )
    return (
        f"The database has rows of {' and '.join(names)}, which EXTRAS does not name: "
        f"they are kept and not shown. Set EXTRAS={every} to have them back."
    )


def find_lost_limits() -> str:
    """Return a sentence on limits that would not hold any more.

    These are budgets, and what staff have switched off. "" where there is none.
    """
    if "operators" in settings.EXTRAS:
        return ""
    known = {*connection.introspection.table_names()}
    if not _has_rows(known.intersection(LIMITS), LIMITS):
        return ""
    return (
        "The database has budgets, or models or tools that are switched off, and "
        "EXTRAS does not name operators, so they would hold no more. Add operators to "
        "EXTRAS; to do without it, first delete the budgets and switch all on again."
    )


def check_unnamed_extras() -> None:
    """End this process where limits would be lost, else log the other leftovers.

    These are rows of apps that are off. A database that does not answer is waited for
    elsewhere.
    """
    try:
        if lost := find_lost_limits():
            sys.exit(lost)
        sentence = describe_unnamed_extras()
    except TROUBLE:
        return
    finally:
        connection.close()
    if sentence:
        logger.warning(sentence)


def _has_rows(tables: Iterable[str], where: Mapping[str, str] | None = None) -> bool:
    """Return True if one of the tables has a row.

    `where` has the condition for some of the tables.
    """
    quote = connection.ops.quote_name
    checks = " OR ".join(
        f"EXISTS (SELECT 1 FROM {quote(name)} WHERE {(where or {}).get(name, '1 = 1')})"  # noqa: S608
        for name in sorted(tables)
    )
    if not checks:
        return False
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT CASE WHEN {checks} THEN 1 ELSE 0 END")
        return bool(cursor.fetchone()[0])
