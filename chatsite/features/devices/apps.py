"""The app of the list of devices, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class DevicesConfig(AppConfig):
    name = "chatsite.features.devices"
    verbose_name = _("Devices")

    def ready(self) -> None:
        from django.contrib.auth.signals import user_logged_in

        from chatsite import plugins, slots

        from . import parts, services

        user_logged_in.connect(services.note_log_in)
        plugins.page_opened.connect(services.note_visit)
        slots.register("account.security", parts.draw_devices_section)
        plugins.register_data(name="devices", list_own=services.describe_devices)
