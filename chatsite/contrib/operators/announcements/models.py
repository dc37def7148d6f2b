"""Announcements of staff to everyone, each with a first and a last moment."""

from datetime import datetime, timedelta

from django.core.exceptions import ValidationError
from django.db import models
from django.utils import timezone
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _


def in_a_day() -> datetime:
    return timezone.now() + timedelta(days=1)


class Announcement(models.Model):
    """One line of plain text, in the languages of the site."""

    MAX_CHARS = 300

    class Level(models.TextChoices):
        INFO = "info", _("Information")
        WARNING = "warning", _("Warning")

    text = models.CharField(_("text in English"), max_length=MAX_CHARS)
    text_zh = models.CharField(
        _("text in Chinese"),
        max_length=MAX_CHARS,
        blank=True,
        help_text=_("Empty: the English one is shown."),
    )
    level = models.CharField(
        _("importance"), max_length=7, choices=Level, default=Level.INFO
    )
    begins_at = models.DateTimeField(_("shown from"), default=timezone.now)
    ends_at = models.DateTimeField(_("shown until"), default=in_a_day, db_index=True)

    class Meta:
        ordering = ["-begins_at", "-id"]
        verbose_name = _("announcement")
        verbose_name_plural = _("announcements")

    def __str__(self) -> str:
        return gettext("Announcement %(id)s") % {"id": self.pk}

    @property
    def translated_text(self) -> str:
        """The text in the language of the page."""
        is_chinese = (get_language() or "").startswith("zh")
        return (is_chinese and self.text_zh) or self.text

    def clean(self) -> None:
        if self.begins_at and self.ends_at and self.begins_at >= self.ends_at:
            raise ValidationError(
                {"ends_at": _("The end must be after the beginning.")}
            )
