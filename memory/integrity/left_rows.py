"""Rows in tables without an app.

An app may be removed before its tables, or EXTRAS may no longer name it.
"""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from django.apps import apps
from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper
from django.db.models import Model


class LeftColumn(NamedTuple):
    """A column of such a table that refers to a row of another table."""

    table: str
    name: str
    referred: str
    key: str
    # True if its row can stay: an optional user, such as the one who has answered, does
    # not own the row.
    is_optional: bool


def delete_left_rows(row: Model) -> None:
    """Delete rows in tables without an app that refer to an erased row.

    The same for rows that are erased with it. They would forbid the erasure.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        for table, condition in _list_erased(row):
            _delete_referring(cursor, table, condition, row.pk, frozenset())


def _list_erased(row: Model) -> Iterator[tuple[str, str]]:
    """Yield the tables of the row and of rows erased with it.

    Each comes with a condition on the key of the row.
    """
    yield row._meta.db_table, f"{_quote(row._meta.pk.column)} = %s"
    for model in apps.get_models():
        for field in model._meta.concrete_fields:
            if field.related_model is row._meta.model and not field.null:
                yield model._meta.db_table, f"{_quote(field.column)} = %s"


def _delete_referring(
    cursor: CursorWrapper, table: str, condition: str, key: object, seen: frozenset
) -> None:
    """Delete or empty references to the rows of a table that meet a condition."""
    for column in _find_left_columns():
        if column.referred != table or column in seen:
            continue
        ids = f"SELECT {_quote(column.key)} FROM {_quote(table)} WHERE {condition}"  # noqa: S608
        referring = f"{_quote(column.name)} IN ({ids})"
        if column.is_optional:
            emptied = f"UPDATE {_quote(column.table)} SET {_quote(column.name)} = NULL"  # noqa: S608
            cursor.execute(f"{emptied} WHERE {referring}", [key])
        else:
            # First delete the rows that refer to these, while these can be selected.
            _delete_referring(cursor, column.table, referring, key, seen | {column})
            deleted = f"DELETE FROM {_quote(column.table)} WHERE {referring}"  # noqa: S608
            cursor.execute(deleted, [key])


@cache
def _find_left_columns() -> list[LeftColumn]:
    found, inspect = [], connection.introspection
    with connection.cursor() as cursor:
        for table in {*inspect.table_names(cursor)} - {*inspect.django_table_names()}:
            relations = inspect.get_relations(cursor, table)
            checked = {
                name
                for each in inspect.get_constraints(cursor, table).values()
                if each["check"]
                for name in each["columns"] or ()
            }
            for column in inspect.get_table_description(cursor, table):
                if column.name in relations:
                    key, referred = relations[column.name][:2]
                    # A constraint can forbid NULL, as for a budget without a target.
                    is_optional = column.null_ok and column.name not in checked
                    found.append(
                        LeftColumn(table, column.name, referred, key, is_optional)
                    )
    return found


def _quote(name: str) -> str:
    return connection.ops.quote_name(name)
