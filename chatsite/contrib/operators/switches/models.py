"""Models and tools that staff have switched off.

One row counts from then until it is switched on again.
"""

from fnmatch import fnmatchcase
from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from memory.models.user_key import nullable_user

MAX_REASON_CHARS = 300


def fits_names(names: str, name: str) -> bool:
    """Return whether a name matches one of these, in which * is any letters."""
    return fnmatchcase(name, names.replace("[", "[[]").replace("?", "[?]"))


class SwitchedOff(models.Model):
    """All of a kind whose name fits, for everyone. Rows stay: they are the log."""

    # A key of admin.KINDS.
    kind = models.CharField(_("what"), max_length=10)
    name = models.CharField(
        _("name"), max_length=100, help_text=_("The exact name; * matches any letters.")
    )
    reason = models.CharField(_("reason"), max_length=MAX_REASON_CHARS)
    user = nullable_user(_("who"))
    # Kept when the account is gone.
    username = models.CharField(_("by"), max_length=150)
    created_at = models.DateTimeField(_("off since"), auto_now_add=True)
    on_at = models.DateTimeField(_("on again"), null=True)
    on_username = models.CharField(_("on again by"), max_length=150)
    on_reason = models.CharField(
        _("why it is on again"), max_length=MAX_REASON_CHARS, blank=True
    )

    class Meta:
        ordering = (F("on_at").desc(nulls_first=True), "-pk")
        default_permissions = ()
        permissions: ClassVar = [("switch", "Can switch models and tools off and on")]
        verbose_name = _("switched off")
        verbose_name_plural = _("switched off")
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["kind", "name"],
                condition=Q(on_at=None),
                name="switched_off_once",
            )
        ]

    def __str__(self) -> str:
        return self.name
