"""Conversations with tools through servers that other people make: LiteLLM's proxy and
llama.cpp's server."""
