"""Signatures: a keyed hash in every row of history over its fixed columns.

A change of a row that bypasses the site makes its signature wrong. docs/admin.md says
which changes are found and which are not.
"""

import hashlib
import hmac
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from typing import Any

from django.conf import settings
from django.db import connection, models

# 128 bits: no other row with the same signature can be found.
LENGTH = 32
BATCH = 500
# The names that are signed with the values: the first names of the columns.
NAMES = {"signature": "seal", "status_signature": "status_seal"}
# One encoder for all, because making one takes as long as using it.
TO_JSON = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":")
).encode


class SignatureField(models.CharField):
    """A signature that is set when the row is inserted, by any code.

    Declare it after the columns it is made `of`. With `renews` it is also renewed when
    the row is saved. Columns added `later` count where they are not empty, so that
    older signatures stay valid.
    """

    def __init__(
        self,
        *,
        of: Sequence[str] = (),
        later: Sequence[str] = (),
        renews: bool = False,
        **options: Any,
    ) -> None:
        self.of, self.later, self.renews = tuple(of), tuple(later), renews
        # NULL only while a migration adds it, so that no table has to be copied.
        options |= {"max_length": LENGTH, "null": True, "editable": False}
        super().__init__(**options)

    def deconstruct(self) -> tuple[str, str, Sequence[Any], dict[str, Any]]:
        name, path, args, options = super().deconstruct()
        for default in ("max_length", "null", "editable"):
            del options[default]
        own = {"of": self.of, "later": self.later, "renews": self.renews}
        options |= {option: value for option, value in own.items() if value}
        return name, path, args, options

    def pre_save(self, model_instance: models.Model, add: bool) -> str | None:
        if add or self.renews:
            setattr(model_instance, self.attname, self.sign_row(model_instance))
        return getattr(model_instance, self.attname)

    def sign_row(self, row: models.Model) -> str:
        return self.digest_values([getattr(row, name) for name in self.columns])

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.of, *self.later)

    def digest_values(self, values: Iterable[Any]) -> str:
        """Return the signature of a row with these values in its `columns`."""
        plain = [*map(_normalize_value, values)]
        count = len(self.of)
        named = zip(self.later, plain[count:], strict=False)
        later = {name: value for name, value in named if value}
        name = NAMES.get(self.name, self.name)
        parts = [self.model._meta.label, name, *plain[:count]]
        if later:
            parts.append(later)
        signed = TO_JSON(parts).encode("utf-8", "surrogatepass")
        key = _derive_key(settings.SIGNING_KEY or settings.SECRET_KEY)
        # hmac.digest() would release the GIL and wait for it again.
        return hmac.new(key, signed, "sha256").hexdigest()[:LENGTH]


@lru_cache(maxsize=8)
def _derive_key(secret: str) -> bytes:
    return hashlib.sha256(b"windowpane.seal:" + secret.encode()).digest()


def _normalize_value(value: Any) -> Any:
    """Return the value as either database does: a whole number is no fraction."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _normalize_value(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_normalize_value(each) for each in value]
    return value


def fields_of(model: type[models.Model]) -> list[SignatureField]:
    return [field for field in model._meta.fields if isinstance(field, SignatureField)]


def has_valid_signature(row: models.Model) -> bool:
    """Return whether the row is unchanged, as far as its signatures reach."""
    return all(
        hmac.compare_digest(getattr(row, field.attname) or "", field.sign_row(row))
        for field in fields_of(type(row))
    )


def make_all(row: models.Model) -> list[str]:
    """Set all signatures of a row and return them in the order of fields_of()."""
    made = []
    for field in fields_of(type(row)):
        made.append(field.sign_row(row))
        setattr(row, field.attname, made[-1])
    return made


def renew_signature(row: models.Model) -> None:
    """Sign a row again after an allowed change, without the checks of history."""
    names = [field.name for field in fields_of(type(row))]
    values = dict(zip(names, make_all(row), strict=True))
    models.QuerySet(type(row)).filter(pk=row.pk).update(**values)


def change_status(rows: models.QuerySet, status: str) -> int:
    """Set and sign another status of the rows.

    Their other columns are not read, so a row that was tampered with is still found.
    """
    field = rows.model._meta.get_field("status_signature")
    known = list(rows.order_by().values_list("pk", "signature"))
    done = 0
    for start in range(0, len(known), BATCH):
        made = {
            pk: field.digest_values([signature, status])
            for pk, signature in known[start:][:BATCH]
        }
        cases = [models.When(pk=pk, then=models.Value(made[pk])) for pk in made]
        chosen = rows.filter(pk__in=list(made))
        values = {"status": status, "status_signature": models.Case(*cases)}
        done += models.QuerySet.update(chosen, **values)
    return done


def sign_all(model: type[models.Model], *, again: bool = False) -> int:
    """Sign the rows without a signature, or all `again`; return how many.

    They are signed as they are now: earlier changes are no longer found.
    """
    fields = fields_of(model)
    rows = models.QuerySet(model).order_by("pk")
    if not again:
        rows = rows.filter(**{fields[0].name: None})
    count, found = 0, rows.iterator(chunk_size=BATCH)
    while batch := [*islice(found, BATCH)]:
        update_rows(model, [(*make_all(row), row.pk) for row in batch], fields)
        count += len(batch)
    return count


def update_rows(
    model: type[models.Model],
    values: Sequence[tuple[Any, ...]],
    columns: Sequence[models.Field],
) -> None:
    """Update many rows by their keys, the last value of each tuple.

    This takes a tenth of the time of bulk_update.
    """
    quote = connection.ops.quote_name
    wanted = ", ".join(f"{quote(column.column)} = %s" for column in columns)
    table = quote(model._meta.db_table)
    with connection.cursor() as cursor:
        cursor.executemany(
            f"UPDATE {table} SET {wanted} WHERE id = %s",  # noqa: S608
            values,
        )
