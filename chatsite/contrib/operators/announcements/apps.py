"""The app of announcements, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AnnouncementsConfig(AppConfig):
    name = "chatsite.contrib.operators.announcements"
    verbose_name = _("Announcements")
    admin_section = "chat"

    def ready(self) -> None:
        from chatsite import plugins, slots

        from . import active_lines

        plugins.register_job(active_lines.look_again)
        slots.register("top", "announcements/_lines.html")
