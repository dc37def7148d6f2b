"""Conversations with tools through servers that other people make: LiteLLM's proxy and
llama.cpp's server."""

# The tools that are called in them.
SEARCH, ADD = "search_transcript", "calculate"
