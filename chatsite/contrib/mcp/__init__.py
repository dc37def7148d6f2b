"""MCP servers as tools of the site."""
