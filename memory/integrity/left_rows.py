"""Rows in tables that no app has, as where an app was taken out before its tables, or
EXTRAS does not name it any more.
"""

from functools import cache

from django.db import connection, transaction
from django.db.models import Model


def delete_left_rows(row: Model) -> None:
    """Delete what refers to a row that is erased in tables that no app has any more, as
    where an app was taken out before its tables. They would forbid to erase it."""
    quote = connection.ops.quote_name
    # Together: some of these tables refer to each other.
    with transaction.atomic(), connection.cursor() as cursor:
        for table, column, referred, is_optional in _find_left_columns():
            if referred == row._meta.db_table:
                name = quote(column)
                emptied = f"UPDATE {quote(table)} SET {name} = NULL"  # noqa: S608
                deleted = f"DELETE FROM {quote(table)}"  # noqa: S608
                deed = emptied if is_optional else deleted
                cursor.execute(f"{deed} WHERE {name} = %s", [row.pk])


@cache
def _find_left_columns() -> list[tuple[str, str, str, bool]]:
    """Columns of such tables: to which table each refers, and whether it can be empty.
    What is optional of a person, such as who has answered, is of another's row."""
    found, inspect = [], connection.introspection
    with connection.cursor() as cursor:
        for table in {*inspect.table_names(cursor)} - {*inspect.django_table_names()}:
            relations = inspect.get_relations(cursor, table)
            for column in inspect.get_table_description(cursor, table):
                if column.name in relations:
                    referred = relations[column.name][1]
                    found.append((table, column.name, referred, column.null_ok))
    return found
