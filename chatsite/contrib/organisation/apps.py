"""The app of accounts of an organisation, and its registrations in the core."""

from django.apps import AppConfig
from django.conf import settings
from django.utils.translation import gettext_lazy as _


class OrganisationConfig(AppConfig):
    name = "chatsite.contrib.organisation"
    verbose_name = _("Sign-in of an organisation")

    def ready(self) -> None:
        from chatsite import plugins, slots

        if settings.SECOND_FACTOR != "no":
            from .second_factor import codes

            slots.register("login.ways", "organisation/_passkey_link.html")
            slots.register("account.security", codes.draw_second_factor)
        if settings.SIGNIN_PROVIDERS:
            from . import account_rechecks, connections

            slots.register("login.ways", connections.draw_buttons)
            slots.register("account.security", connections.draw_connections)
            plugins.register_data(
                name="connections", list_own=connections.list_connections
            )
            if account_rechecks.is_wanted():
                plugins.register_job(
                    account_rechecks.sweep_due_accounts, due=account_rechecks.find_due
                )
