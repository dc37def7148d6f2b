"""Fixtures whose rows are made once and inserted again for the tests that follow.

A turn of a conversation takes fifty statements of the ORM, which is more than most
tests do with it. The rows of a fixture are the same in every test, so they are kept:

    @pytest.fixture
    @remembered
    def conversation(alice): ...

They are made again where something else was different before: other rows in the
database, other settings, replaced functions. And they are never older than some
seconds, because the site counts what a user wrote within the last minute.
"""

import inspect
import io
import pickle
from collections.abc import Callable
from functools import cache, wraps
from time import monotonic as now
from typing import Any

from django.apps import apps
from django.conf import UserSettingsHolder, settings
from django.contrib.auth import get_user_model
from django.db import connection, models, transaction

MOST_SECONDS = 30.0
# Made by migrations, or different each time and in no relation to conversations. A
# log-in before a fixture would have it made for every test.
LEFT_OUT = (
    *("auth_permission", "django_content_type"),
    *("django_session", "devices_device"),
)

Rows = dict[str, dict[Any, tuple]]


def remembered(make: Callable) -> Callable:
    kept: dict[object, tuple[float, Rows, bytes]] = {}

    @wraps(make)
    def fixture(*instance: object, request: Any, **given: Any) -> Any:
        if is_patched(request):
            return make(*instance, **given)
        before = read_tables()
        key = (tell_apart(before), overridden_settings())
        made_at, rows, state = kept.get(key, (-MOST_SECONDS, {}, b""))
        if now() - made_at < MOST_SECONDS:
            insert(rows)
            return load(state, given)
        for outdated in [k for k, v in kept.items() if v[0] + MOST_SECONDS < now()]:
            del kept[outdated]
        made = make(*instance, **given)
        kept[key] = (now(), added(before), dump(made, given))
        return made

    arguments = inspect.signature(make).parameters.values()
    request = inspect.Parameter("request", inspect.Parameter.KEYWORD_ONLY)
    fixture.__signature__ = inspect.Signature([*arguments, request])
    return fixture


def is_patched(request: Any) -> bool:
    patch = request.getfixturevalue("monkeypatch")
    return bool(patch._setattr or patch._setitem)


def overridden_settings() -> str:
    found, layer = [], settings._wrapped
    while isinstance(layer, UserSettingsHolder):
        values = {k: v for k, v in vars(layer).items() if k.isupper()}
        found.append(sorted(values.items()))
        layer = layer.default_settings
    return repr(found)


@cache
def tables() -> dict[str, list[str]]:
    """The columns of each table that can be written, the key first."""
    found = {}
    for model in apps.get_models(include_auto_created=True):
        fields = [f for f in model._meta.local_concrete_fields if not f.generated]
        fields.sort(key=lambda field: not field.primary_key)
        has_table = model._meta.managed and not model._meta.proxy
        if has_table and model._meta.db_table not in LEFT_OUT:
            found[model._meta.db_table] = [field.column for field in fields]
    return found


def read_tables() -> Rows:
    """All rows, by table and key."""
    checks = [f"EXISTS (SELECT 1 FROM {quote(name)})" for name in tables()]  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(checks)}")
        filled = dict(zip(tables(), cursor.fetchone(), strict=True))
        return {name: read(cursor, name) for name in tables() if filled[name]}


def read(cursor: Any, table: str) -> dict[Any, tuple]:
    # As expressions they come as they are stored, without a type to convert to.
    sign = "+" if connection.vendor == "sqlite" else ""
    columns = ", ".join(sign + quote(name) for name in tables()[table])
    cursor.execute(f"SELECT {columns} FROM {quote(table)}")  # noqa: S608
    return {row[0]: row for row in cursor.fetchall()}


def tell_apart(rows: Rows) -> str:
    """Return the values that differ between two states of the database.

    A login changes a user.
    """
    users = get_user_model()._meta.db_table
    login = tables()[users].index("last_login")
    known = {
        key: row[:login] + row[login + 1 :] for key, row in rows.get(users, {}).items()
    }
    return repr({**rows, users: known})


def added(before: Rows) -> Rows:
    """The rows that are new since then, or others."""
    return {
        table: {key: row for key, row in rows.items() if known.get(key) != row}
        for table, rows in read_tables().items()
        for known in [before.get(table, {})]
    }


def insert(rows: Rows) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        for table, changed in rows.items():
            if not changed:
                continue
            columns = tables()[table]
            names = ", ".join(map(quote, columns))
            places = ", ".join(["%s"] * len(columns))
            key = quote(columns[0])
            cursor.executemany(
                f"DELETE FROM {quote(table)} WHERE {key} = %s",  # noqa: S608
                [[each] for each in changed],
            )
            cursor.executemany(
                f"INSERT INTO {quote(table)} ({names}) VALUES ({places})",  # noqa: S608
                list(changed.values()),
            )


def quote(name: str) -> str:
    return connection.ops.quote_name(name)


def dump(made: Any, given: dict[str, Any]) -> bytes:
    """Return the result of the fixture, and its changes to the rows that it
    was given.

    Where these were part of it, later tests get their own.
    """
    rows = {k: v for k, v in given.items() if isinstance(v, models.Model)}
    names = {id(row): name for name, row in rows.items()}
    output = io.BytesIO()

    class Pickler(pickle.Pickler):
        def persistent_id(self, value: Any) -> str | None:
            return names.get(id(value))

    Pickler(output).dump((made, {name: vars(row) for name, row in rows.items()}))
    return output.getvalue()


def load(state: bytes, given: dict[str, Any]) -> Any:
    class Unpickler(pickle.Unpickler):
        def persistent_load(self, name: str) -> Any:
            return given[name]

    made, states = Unpickler(io.BytesIO(state)).load()
    for name, values in states.items():
        vars(given[name]).clear()
        vars(given[name]).update(values)
    return made
