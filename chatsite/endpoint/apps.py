"""The app of the endpoint for other clients, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class EndpointConfig(AppConfig):
    name = "chatsite.endpoint"
    verbose_name = _("Endpoint for other clients")

    def ready(self) -> None:
        from chatsite import hooks

        from . import asgi, keys, parts
        from .addresses import START

        hooks.asgi_applications[START] = asgi.answer
        hooks.account_sections.append(parts.draw_account_section)
        hooks.account_rows["api_keys"] = keys.describe_api_keys
        hooks.access_log_names["list apikey"] = _("API keys (in a list)")
