"""The app that lets people install the site, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class InstallableConfig(AppConfig):
    name = "chatsite.features.installable"
    verbose_name = _("Installed site")

    def ready(self) -> None:
        from chatsite import plugins, slots

        plugins.mount(
            *("/manifest.webmanifest", "/offline/", "/service-worker.js"),
            access_log="none: nothing that people wrote is shown",
        )
        slots.register("head", "installable/_head.html")
        slots.add_static_file("installable/install.js", "every-page")
