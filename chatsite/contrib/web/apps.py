"""The app of the web, and what it adds to the tools."""

from django.apps import AppConfig


class WebConfig(AppConfig):
    name = "chatsite.contrib.web"

    def ready(self) -> None:
        from chatsite import plugins
        from chatsite.features.tools import registry

        from . import web_checks, web_tools

        registry.sources.append(web_tools.WebTools())
        plugins.doctor_checks["web search"] = web_checks.try_search
