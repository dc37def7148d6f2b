"""Rows of history, written once.

Only named columns of them may change, and they are deleted only together with their
conversation. Tests and manual repairs that have to change them use a plain QuerySet.
"""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from django.db import models

# The order in lists.
NEWEST = ["-created_at", "-id"]


class HistoryQuerySet(models.QuerySet):
    def update(self, **values: Any) -> int:
        self.model.check_change(values)
        return super().update(**values)

    def delete(self) -> tuple[int, dict[str, int]]:
        raise TypeError(f"{self.model.__name__} rows are kept.")

    # As Django's own: templates and managers must not offer it.
    delete.alters_data = delete.queryset_only = True

    def bulk_create(
        self,
        objs: Iterable[models.Model],
        batch_size: int | None = None,
        ignore_conflicts: bool = False,
        update_conflicts: bool = False,
        **options: Any,
    ) -> list[models.Model]:
        if update_conflicts:
            raise TypeError(f"{self.model.__name__} rows are never written over.")
        return super().bulk_create(objs, batch_size, ignore_conflicts, **options)


class History(models.Model):
    """A row of history: the checks of HistoryQuerySet for a single row."""

    CHANGING: ClassVar[frozenset[str]] = frozenset()

    objects = HistoryQuerySet.as_manager()

    class Meta:
        abstract = True
        default_permissions = ()

    def save(
        self, *, update_fields: Iterable[str] | None = None, **options: Any
    ) -> None:
        if self._state.adding:
            # Saving a row with a known key would silently overwrite the stored one.
            options["force_insert"] = True
        else:
            names = {f.name for f in self._meta.fields if not f.primary_key}
            wanted = names if update_fields is None else update_fields
            self.check_change({name: getattr(self, name) for name in wanted})
        super().save(update_fields=update_fields, **options)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        raise TypeError(f"{type(self).__name__} rows are kept.")

    @classmethod
    def check_change(cls, values: Mapping[str, Any]) -> None:
        """Raise TypeError unless the columns may get these values."""
        names = {cls._meta.get_field(name).name for name in values}
        if fixed := ", ".join(sorted(names - cls.CHANGING)):
            raise TypeError(f"{cls.__name__} rows are append-only, and so is {fixed}.")
