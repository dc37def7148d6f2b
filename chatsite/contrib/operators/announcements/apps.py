"""The app of announcements, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AnnouncementsConfig(AppConfig):
    name = "chatsite.contrib.operators.announcements"
    verbose_name = _("Announcements")
    admin_section = "chat"

    def ready(self) -> None:
        from chatsite import slots
        from chatsite.turns import runner

        from . import current

        runner.jobs.append(current.JOB)
        slots.register("top", "announcements/_lines.html")
