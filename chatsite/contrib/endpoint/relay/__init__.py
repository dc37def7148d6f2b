"""Relaying a request to the provider unchanged, and its answer back."""
