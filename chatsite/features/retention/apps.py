"""The app of retention, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class RetentionConfig(AppConfig):
    name = "chatsite.features.retention"
    verbose_name = _("Retention")
    admin_section = "desk"

    def ready(self) -> None:
        from chatsite import plugins, slots

        from . import nightly, parts

        plugins.register_job(nightly.sweep_old)
        slots.register("account.privacy", parts.draw_retention_section)
