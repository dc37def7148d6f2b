"""Survival of fifty compactions: planted things, word for word or by a search."""
