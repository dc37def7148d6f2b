"""What keys that may read open to agents: an MCP server at /mcp."""
