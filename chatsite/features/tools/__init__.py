"""The tools of models: the built-in ones, those of the site and of MCP servers.

Their results are stored and sent here. This package knows no turn.
"""
