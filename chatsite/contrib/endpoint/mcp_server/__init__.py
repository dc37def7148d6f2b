"""The MCP server at /mcp, for agents with keys that may read."""
