"""The app of MCP servers, and what it adds to the tools."""

from django.apps import AppConfig


class McpConfig(AppConfig):
    name = "chatsite.contrib.mcp"

    def ready(self) -> None:
        from chatsite.features.tools import registry

        from . import checks, mcp_servers  # noqa: F401

        registry.sources.append(mcp_servers.McpTools())
