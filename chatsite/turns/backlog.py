"""The work that waits for any process to do it."""

from collections.abc import Callable, Sequence
from typing import Any

from django.contrib.auth import get_user_model
from django.db import connection
from django.db.models import Exists, QuerySet

Find = Callable[[], QuerySet[Any]]


class Backlog:
    """Several kinds of work, each given by its rows, looked for in one statement.

    Mostly there is none. Django takes ten times as long to compile that statement as
    the database to answer it, so it is compiled once. Its times are the database's, not
    those of that moment.
    """

    def __init__(self, kinds: Sequence[Find]) -> None:
        self.kinds = kinds
        self._statement: tuple[str, tuple[Any, ...]] | None = None

    def find_due(self) -> set[Find]:
        """Return the kinds that have any rows."""
        self._statement = self._statement or self._compile()
        with connection.cursor() as cursor:
            cursor.execute(*self._statement)
            flags = cursor.fetchone()
        if flags is None:
            return set()
        return {kind for kind, is_due in zip(self.kinds, flags, strict=True) if is_due}

    def _compile(self) -> tuple[str, tuple[Any, ...]]:
        # Everything that can wait belongs to a user, so there is a row to read it with.
        users = get_user_model().objects.order_by()[:1]
        flags = (Exists(rows().order_by()) for rows in self.kinds)
        return users.values_list(*flags).query.sql_with_params()
