"""What both databases can say, each in its own words."""

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Func, IntegerField
from django.db.models.sql.compiler import SQLCompiler


class ListLength(Func):
    """How many entries the list under `key` of a JSON column has; NULL: none."""

    output_field = IntegerField()

    def __init__(self, expression: Any, *, key: str, **extra: Any) -> None:
        super().__init__(expression, key=key, **extra)

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any
    ) -> tuple[str, list[Any]]:
        template = "NULLIF(json_array_length(%(expressions)s, '$.%(key)s'), 0)"
        return super().as_sql(compiler, connection, template=template, **context)

    def as_postgresql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any
    ) -> tuple[str, list[Any]]:
        template = (
            "CASE WHEN jsonb_typeof(%(expressions)s -> '%(key)s') = 'array' THEN "
            "NULLIF(jsonb_array_length(%(expressions)s -> '%(key)s'), 0) END"
        )
        return super().as_sql(compiler, connection, template=template, **context)
