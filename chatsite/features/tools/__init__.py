"""What models may call: the built-in tools, one's own and those of MCP servers; and how
their results are stored and sent. Knows no turn."""
