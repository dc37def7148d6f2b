"""The app of the web, and what it adds to the tools."""

from django.apps import AppConfig


class WebConfig(AppConfig):
    name = "chatsite.contrib.web"

    def ready(self) -> None:
        from chatsite import plugins
        from chatsite.features.tools.registry import ToolSource

        from . import web_checks, web_tools

        plugins.register_source("web", web_tools.WebTools(), of=ToolSource)
        check = plugins.DoctorCheck(web_checks.try_search)
        plugins.register_source("web search", check)
