"""The app of signing in, and what it adds to the core."""

from django.apps import AppConfig
from django.conf import settings
from django.utils.translation import gettext_lazy as _


class SigninConfig(AppConfig):
    name = "chatsite.features.signin"
    verbose_name = _("Sign-in")
    admin_section = "auth"

    def ready(self) -> None:
        from chatsite import hooks
        from chatsite.ops import open_paths

        from . import deeds, parts

        open_paths.secret_paths.append("/accounts/link/")
        hooks.login_parts.append(parts.draw_forgotten)
        hooks.account_sections.append(parts.draw_email)
        hooks.account_rows["mailed_links"] = deeds.describe_links
        if settings.SIGNIN_PROVIDERS:
            from chatsite.turns import runner

            from .organisation import connections, rechecking

            hooks.login_parts.insert(0, connections.draw_buttons)
            hooks.account_sections.append(connections.draw_connections)
            hooks.account_rows["connections"] = connections.list_connections
            if rechecking.is_wanted():
                runner.jobs.append(rechecking.JOB)
        if settings.SECOND_FACTOR != "no":
            from .organisation import second_factor

            hooks.login_parts.insert(0, second_factor.draw_passkey_link)
            hooks.log_in = second_factor.log_in_by_stages
            hooks.account_sections.append(second_factor.draw_second_factor)
