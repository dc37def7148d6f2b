"""The app of signing in, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class SigninConfig(AppConfig):
    name = "chatsite.features.signin"
    verbose_name = _("Sign-in")
    admin_section = "auth"

    def ready(self) -> None:
        from chatsite import plugins, slots

        from . import link_actions, parts

        plugins.mount(
            "/accounts/link/",
            slot="PASSWORD",
            has_secret=True,
            pace="axes.middleware.AxesMiddleware",
            access_log="none: nothing that people wrote is shown",
        )
        slots.register("login.below", parts.draw_forgotten)
        slots.register("account.you", parts.draw_email)
        plugins.register_data(name="mailed_links", list_own=link_actions.describe_links)
