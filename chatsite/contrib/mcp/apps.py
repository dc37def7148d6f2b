"""The app of MCP servers, and what it adds to the tools."""

from django.apps import AppConfig


class McpConfig(AppConfig):
    name = "chatsite.contrib.mcp"

    def ready(self) -> None:
        from chatsite import plugins
        from chatsite.features.tools.registry import ToolSource

        from . import checks, mcp_servers  # noqa: F401

        plugins.register_source("mcp", mcp_servers.McpTools(), of=ToolSource)
