"""Edits of statements, and what undoes them."""

from typing import Any

from django.core import signing
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from memory.transcript import ActionError


class StatementEdit:
    """The edit of a statement: what its rows were before, and what undoes it.

    `rows` are all that it may change, such as those that it replaces; `worded_at`: the
    column with the time of new words; `scope`: where the undo is good.
    """

    def __init__(self, rows: QuerySet, worded_at: str, scope: object) -> None:
        self.rows = rows
        self.columns = ("pk", "text", "state", "replaced_by", worded_at)
        self.salt = f"{rows.model._meta.label}-{scope}"
        self.before = self._read_rows()

    def _read_rows(self) -> dict[int, list[Any]]:
        rows = self.rows.all().values_list(*self.columns)
        return {pk: [*values, at and str(at)] for pk, *values, at in rows}

    def sign_undo(self) -> str:
        """Return each row that has changed, as it was, and its words now."""
        changed = [
            (pk, self.before[pk], now[:2])
            for pk, now in self._read_rows().items()
            if now != self.before.get(pk, now)
        ]
        return signing.dumps(changed, salt=self.salt, compress=True)

    def restore_rows(self, signed: str) -> None:
        """Undo an edit. Raises ActionError if its words were changed again since."""
        try:
            changed = signing.loads(signed, salt=self.salt)
        except signing.BadSignature:
            raise ActionError(_("This no longer exists. Reload the page.")) from None
        for pk, values, made in changed:
            # The row may be erased by now, as may be the one that replaced it.
            if self.before.get(pk, values)[:2] not in (made, values[:2]):
                said = _("Not undone: the words were changed again since.")
                raise ActionError(said)
            fields = dict(zip(self.columns[1:], values, strict=True))
            by = self.rows.filter(pk=fields["replaced_by"]).first()
            self.rows.filter(pk=pk).update(**{**fields, "replaced_by": by})
