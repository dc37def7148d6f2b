"""Replies tried again in another way."""
