"""Rows in tables that no app has, as where an app was taken out before its tables, or
EXTRAS does not name it any more.
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
    # Whether its row can stay: what is optional of a person, such as who has answered,
    # is of another's row.
    is_optional: bool


def delete_left_rows(row: Model) -> None:
    """Delete what refers to a row that is erased, and to the rows that go with it, in
    tables that no app has any more. They would forbid to erase it."""
    with transaction.atomic(), connection.cursor() as cursor:
        for table, condition in _list_erased(row):
            _delete_referring(cursor, table, condition, row.pk, frozenset())


def _list_erased(row: Model) -> Iterator[tuple[str, str]]:
    """The row, and those of the site's tables that are deleted with it; each as a table
    and a condition on the key of the row."""
    yield row._meta.db_table, f"{_quote(row._meta.pk.column)} = %s"
    for model in apps.get_models():
        for field in model._meta.concrete_fields:
            if field.related_model is row._meta.model and not field.null:
                yield model._meta.db_table, f"{_quote(field.column)} = %s"


def _delete_referring(
    cursor: CursorWrapper, table: str, condition: str, key: object, seen: frozenset
) -> None:
    """Delete or empty what refers to the rows of a table that fulfil a condition."""
    for column in _find_left_columns():
        if column.referred != table or column in seen:
            continue
        ids = f"SELECT {_quote(column.key)} FROM {_quote(table)} WHERE {condition}"  # noqa: S608
        referring = f"{_quote(column.name)} IN ({ids})"
        if column.is_optional:
            emptied = f"UPDATE {_quote(column.table)} SET {_quote(column.name)} = NULL"  # noqa: S608
            cursor.execute(f"{emptied} WHERE {referring}", [key])
        else:
            # First what refers to these, as long as they can be named.
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
                    # An empty one can be against a rule, as a budget of nothing is.
                    is_optional = column.null_ok and column.name not in checked
                    found.append(
                        LeftColumn(table, column.name, referred, key, is_optional)
                    )
    return found


def _quote(name: str) -> str:
    return connection.ops.quote_name(name)
