"""The app of switches, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class SwitchesConfig(AppConfig):
    name = "chatsite.contrib.operators.switches"
    verbose_name = _("Switched off")
    admin_section = "chat"

    def ready(self) -> None:
        from chatsite import plugins

        from . import active_switches

        plugins.register_job(active_switches.read_when_due)
        plugins.register_guard("use", active_switches.is_off)
        plugins.register_data(
            staff_actions={"switch": _("switched off or on")},
            log_names={"off": _("off:"), "on": _("on again:")},
        )
