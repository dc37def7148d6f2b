"""The numbers of rows that each night deleted, without their contents."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class RetentionRun(models.Model):
    """One night's work, which all processes share: the row is made by the first."""

    day = models.DateField(_("night"), unique=True)
    begun_at = models.DateTimeField(_("begun"), auto_now_add=True)
    finished_at = models.DateTimeField(_("finished"), null=True, blank=True)
    conversations = models.PositiveIntegerField(_("conversations"), default=0)
    sessions = models.PositiveIntegerField(_("sessions"), default=0)
    logins = models.PositiveIntegerField(_("log-in attempts"), default=0)
    accesses = models.PositiveIntegerField(_("log entries"), default=0)
    records = models.PositiveIntegerField(_("deletion records"), default=0)

    class Meta:
        ordering = ["-day"]
        default_permissions = ()
        verbose_name = _("retention run")
        verbose_name_plural = _("retention")

    def __str__(self) -> str:
        return self.day.isoformat()
