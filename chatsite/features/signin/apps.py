"""The app of signing in, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class SigninConfig(AppConfig):
    name = "chatsite.features.signin"
    verbose_name = _("Sign-in")
    admin_section = "auth"

    def ready(self) -> None:
        from chatsite import plugins, slots
        from chatsite.ops import open_paths

        from . import deeds, parts

        open_paths.secret_paths.append("/accounts/link/")
        slots.register("login.below", parts.draw_forgotten)
        slots.register("account", parts.draw_email)
        plugins.register_data(
            plugins.AppData(name="mailed_links", list_own=deeds.describe_links)
        )
