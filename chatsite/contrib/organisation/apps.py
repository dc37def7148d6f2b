"""The app of accounts of an organisation, and what it adds to the core."""

from django.apps import AppConfig
from django.conf import settings
from django.utils.translation import gettext_lazy as _


class OrganisationConfig(AppConfig):
    name = "chatsite.contrib.organisation"
    verbose_name = _("Sign-in of an organisation")

    def ready(self) -> None:
        from chatsite import plugins

        if settings.SIGNIN_PROVIDERS:
            from chatsite.turns import runner

            from . import connections, rechecking

            plugins.login_parts.insert(0, connections.draw_buttons)
            plugins.account_sections.append(connections.draw_connections)
            plugins.account_rows["connections"] = connections.list_connections
            if rechecking.is_wanted():
                runner.jobs.append(rechecking.JOB)
        if settings.SECOND_FACTOR != "no":
            from .second_factor import codes

            plugins.login_parts.insert(0, codes.draw_passkey_link)
            plugins.log_in = codes.log_in_by_stages
            plugins.account_sections.append(codes.draw_second_factor)
