"""Calls of tools as the transcript shows them."""
