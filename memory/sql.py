"""SQL that differs between the databases, prepared statements, fair order, lookups.

The lookups are two forms of IN that Django does not have.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from functools import lru_cache, update_wrapper
from types import SimpleNamespace
from typing import Any, TypeVar

from django.core.signals import setting_changed
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import (
    Count,
    Expression,
    F,
    Field,
    Func,
    IntegerField,
    Lookup,
    Model,
    QuerySet,
    Subquery,
    TextField,
    Window,
)
from django.db.models.constants import OnConflict
from django.db.models.functions import Coalesce, RowNumber
from django.db.models.sql import InsertQuery, Query, UpdateQuery
from django.db.models.sql.compiler import SQLCompiler
from django.db.models.sql.constants import ROW_COUNT

# The time limits of a serving process: for a lock, and for an idle transaction.
LIMITS = ("lock_timeout", "idle_in_transaction_session_timeout")
DAY_MS = 24 * 3600 * 1000


Row = TypeVar("Row", bound=Model)


def round_robin_by_user(
    rows: QuerySet[Row], user: str, first_by: str = "pk"
) -> QuerySet[Row]:
    """Order the rows by turns: the first row of each user, then the second.

    Many rows of one user keep no other user waiting. Users with the fewest rows come
    first, so many rows of several users do not either. `user`: the name of the column.
    """
    own = Window(RowNumber(), partition_by=user, order_by=first_by)
    of_user = Window(Count("pk"), partition_by=user)
    ordered = rows.annotate(own_place=own, of_user=of_user)
    return ordered.order_by("own_place", "of_user", F(first_by), "pk")


def count_rows_by(rows: QuerySet[Any], column: str) -> Coalesce:
    """Return how many rows have the value of an outer row in this column."""
    counted = rows.order_by().values(column).annotate(count=Count("pk"))
    return Coalesce(Subquery(counted.values("count")), 0, output_field=IntegerField())


@contextmanager
def without_limits(
    connection: BaseDatabaseWrapper, *, lock_ms: int = 0
) -> Iterator[None]:
    """Lift the time limits of this connection, for work on the whole database.

    On PostgreSQL a lock is waited for `lock_ms`; 0 means without a limit.
    """
    if connection.vendor == "postgresql":
        lift = [f"SET {name} = 0" for name in LIMITS]
        lift += [f"SET lock_timeout = {lock_ms}"]
        restore = [f"RESET {name}" for name in LIMITS]
    else:
        timeout = connection.settings_dict["OPTIONS"].get("timeout", 5)
        lift = [f"PRAGMA busy_timeout = {DAY_MS}"]
        restore = [f"PRAGMA busy_timeout = {int(timeout * 1000)}"]
    _execute_all(connection, lift)
    yield
    _execute_all(connection, restore)


def _execute_all(connection: BaseDatabaseWrapper, statements: list[str]) -> None:
    # An open pragma counts as a statement in progress, which prevents VACUUM.
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


class ListLength(Func):
    """The number of entries of the list under `key` of a JSON column; NULL for none."""

    output_field = IntegerField()

    def __init__(self, expression: Any, *, key: str, **extra: Any) -> None:
        super().__init__(expression, key=key, **extra)

    def as_sqlite(self, *args: Any, **options: Any) -> tuple[str, list[Any]]:
        template = "NULLIF(json_array_length(%(expressions)s, '$.%(key)s'), 0)"
        return super().as_sql(*args, template=template, **options)

    def as_postgresql(self, *args: Any, **options: Any) -> tuple[str, list[Any]]:
        template = (
            "CASE WHEN jsonb_typeof(%(expressions)s -> '%(key)s') = 'array' THEN "
            "NULLIF(jsonb_array_length(%(expressions)s -> '%(key)s'), 0) END"
        )
        return super().as_sql(*args, template=template, **options)


class ValueByKey(Func):
    """The text that a JSON object has under a key of the row; NULL for none."""

    output_field = TextField()

    def as_sqlite(self, *args: Any, **options: Any) -> tuple[str, list[Any]]:
        template = "json_extract(%(expressions)s || '\"')"
        joiner = ", '$.\"' || "
        return super().as_sql(*args, template=template, arg_joiner=joiner, **options)

    def as_postgresql(self, *args: Any, **options: Any) -> tuple[str, list[Any]]:
        template, joiner = "(%(expressions)s::text)", "::jsonb ->> "
        return super().as_sql(*args, template=template, arg_joiner=joiner, **options)


class Parameter(Expression):
    """A placeholder that a call of a prepared statement fills in.

    `column` converts the value where the database has another form of it than Python,
    as of a date.
    """

    def __init__(self, name: str, column: Field | None = None) -> None:
        super().__init__()
        self.name, self.column = name, column

    def as_sql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper
    ) -> tuple[str, list[Any]]:
        return "%s", [self]

    def convert_value(self, value: Any, connection: BaseDatabaseWrapper) -> Any:
        if self.column is None:
            return value
        return self.column.get_db_prep_save(value, connection)


@Field.register_lookup
class Among(Lookup):
    """`field__among=values`, of numbers or texts: IN with all values as one parameter.

    Those of IN are prepared one by one, which with a thousand takes Django longer than
    the database needs for their rows.
    """

    lookup_name = "among"
    prepare_rhs = False

    def get_db_prep_lookup(
        self, value: Collection[Any], connection: BaseDatabaseWrapper
    ) -> tuple[str, list[Any]]:
        if connection.vendor == "postgresql":
            return "= ANY(%s)", [list(value)]
        return "IN (SELECT value FROM json_each(%s))", [json.dumps(list(value))]

    def as_sql(
        self, compiler: Any, connection: BaseDatabaseWrapper
    ) -> tuple[str, list[Any]]:
        column, params = self.process_lhs(compiler, connection)
        condition, values = self.process_rhs(compiler, connection)
        return f"{column} {condition}", [*params, *values]

    def process_rhs(
        self, compiler: Any, connection: BaseDatabaseWrapper
    ) -> tuple[str, list[Any]]:
        if not isinstance(self.rhs, Parameter):
            return super().process_rhs(compiler, connection)
        condition, _ = self.get_db_prep_lookup((), connection)
        return condition, [Parameter(self.rhs.name, self)]

    def get_db_prep_save(
        self, value: Collection[Any], connection: BaseDatabaseWrapper
    ) -> Any:
        """Return the value for a prepared statement, as the database takes it."""
        _, [prepared] = self.get_db_prep_lookup(value, connection)
        return prepared


@Field.register_lookup
class OneOf(Among):
    """`field__one_of=words`: IN with words of the code, written into the SQL itself.

    SQLite uses a partial index only where its condition is in the statement, word for
    word and in the same order. Raises ValueError for anything that is not an
    identifier.
    """

    lookup_name = "one_of"

    def get_db_prep_lookup(
        self, value: Collection[str], connection: BaseDatabaseWrapper
    ) -> tuple[str, list[Any]]:
        words = [str(word) for word in value]
        if not all(word.isidentifier() for word in words):
            raise ValueError(f"not only words: {words}")
        listed = ", ".join(f"'{word}'" for word in words)
        return f"IN ({listed})", []


def _fill_params(
    params: Iterable[Any], values: dict[str, Any], connection: BaseDatabaseWrapper
) -> tuple[Any, ...]:
    return tuple(
        each.convert_value(values[each.name], connection)
        if isinstance(each, Parameter)
        else each
        for each in params
    )


# Rows, and the new values of their columns.
Update = tuple[QuerySet[Any], dict[str, Any]]
# A statement's compiler, its SQL, and its parameters.
Compiled = tuple[SQLCompiler, str, tuple[Any, ...]]


class _PreparedStatement:
    def __init__(self, build: Callable[..., Any], fields: dict[str, Field]) -> None:
        self.build, self._fields = build, fields
        # By the names of the given arguments.
        self._compiled: dict[tuple[str, ...], Compiled] = {}
        setting_changed.connect(self._forget)
        update_wrapper(self, build)

    def _forget(self, **kwargs: Any) -> None:
        self._compiled = {}

    def _fill(self, values: dict[str, Any]) -> SQLCompiler:
        """Return a finished compiler for this thread's connection."""
        names = (*values,)
        found = self._compiled.get(names) or self._compile(names)
        compiled, sql, params = self._compiled[names] = found
        compiler = copy(compiled)
        # django.db.connection would look up the thread's connection at each use.
        connection = compiler.connection = connections[DEFAULT_DB_ALIAS]
        filled = _fill_params(params, values, connection)
        compiler.as_sql = lambda: (sql, filled)
        return compiler

    def _compile(self, names: Iterable[str]) -> Compiled:
        given = {name: Parameter(name, self._fields.get(name)) for name in names}
        query = self._to_query(self.build(**given))
        compiler = query.get_compiler(DEFAULT_DB_ALIAS)
        return compiler, *compiler.as_sql()

    def _to_query(self, built: Any) -> Query:
        raise NotImplementedError


class PreparedRows(_PreparedStatement):
    """A prepared SELECT, made by prepared_rows()."""

    def _to_query(self, built: QuerySet[Any, Any]) -> Query:
        self._rows = built
        return built.query

    def _compile(self, names: Iterable[str]) -> Compiled:
        compiled = super()._compile(names)
        compiler = compiled[0]
        columns = [each[0] for each in compiler.select[: compiler.col_count]]
        # Django looks them up again for each call.
        converters = compiler.get_converters(columns)
        compiler.get_converters = lambda _: converters
        return compiled

    def __call__(self, **values: Any) -> list[Any]:
        compiler = self._fill(values)
        query = copy(compiler.query)
        query.get_compiler = lambda *args, **options: compiler
        rows: QuerySet[Any] = QuerySet(self._rows.model, query, DEFAULT_DB_ALIAS)
        return list(self._rows._iterable_class(rows))


class PreparedUpdate(_PreparedStatement):
    """A prepared UPDATE, made by prepared_update()."""

    def _to_query(self, built: Update) -> Query:
        rows, values = built
        # Models of history check which of their columns may change.
        if check_change := getattr(rows.model, "check_change", None):
            check_change(values)
        for name, value in values.items():
            if isinstance(value, Parameter):
                value.column = rows.model._meta.get_field(name)
        query = rows.query.chain(UpdateQuery)
        query.add_update_values(values)
        return query

    def __call__(self, **values: Any) -> int:
        compiler = self._fill(values)
        with transaction.mark_for_rollback_on_error(using=DEFAULT_DB_ALIAS):
            return compiler.execute_sql(ROW_COUNT)


def prepared_rows(**fields: Field) -> Callable[[Callable[..., Any]], PreparedRows]:
    """Decorate a function that makes a queryset of its arguments.

    Django builds and compiles the queryset once for a process; that takes it several
    times as long as SQLite needs to answer. A call fills in the arguments, given by
    name, and returns the rows.

    The function gets a Parameter for each argument, so the statement can depend on
    nothing else but settings and which arguments are given: the time, say, is Now() or
    an argument. `fields` convert the arguments of these names. `build` of the result is
    the function itself, for use in other querysets.
    """
    return lambda build: PreparedRows(build, fields)


def prepared_update(**fields: Field) -> Callable[[Callable[..., Any]], PreparedUpdate]:
    """Decorate a function that returns rows and their new values, for an UPDATE.

    As prepared_rows(), but a call returns how many rows it has changed. An argument
    that is a new value is converted as its column requires.
    """
    return lambda build: PreparedUpdate(build, fields)


def insert_row(row: Row, update: tuple[str, ...] = ()) -> Row:
    """Store a new row as row.save() does, but compile the statement once for a process.

    Without the signals of save(). `update`: the columns that a row which has its key
    already gets from it.
    """
    own = row._meta.auto_field
    fields = [each for each in row._meta.concrete_fields if each is not own]
    values = {each.attname: each.pre_save(row, add=True) for each in fields}
    given = [each for each in values.items() if hasattr(each[1], "as_sql")]
    sql, params = _compile_insert(type(row), (*values,), tuple(given), update)
    connection = connections[DEFAULT_DB_ALIAS]
    filled = _fill_params(params, values, connection)
    with (
        transaction.mark_for_rollback_on_error(using=DEFAULT_DB_ALIAS),
        connection.cursor() as cursor,
    ):
        cursor.execute(sql, filled)
        [row.pk] = cursor.fetchone()
    row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS
    return row


@lru_cache(maxsize=100)
def _compile_insert(
    model: type[Model],
    names: tuple[str, ...],
    expressions: tuple[tuple[str, Any], ...],
    update: tuple[str, ...],
) -> tuple[str, tuple[Any, ...]]:
    key, fields = model._meta.pk, [model._meta.get_field(name) for name in names]
    values = {each.attname: Parameter(each.attname, each) for each in fields}
    query = InsertQuery(
        model,
        on_conflict=OnConflict.UPDATE if update else None,
        update_fields=[model._meta.get_field(name) for name in update],
        unique_fields=[key],
    )
    row = SimpleNamespace(**values | dict(expressions))
    query.insert_values(fields, [row], raw=True)
    compiler = query.get_compiler(DEFAULT_DB_ALIAS)
    compiler.returning_fields = [key]
    [statement] = compiler.as_sql()
    return statement
