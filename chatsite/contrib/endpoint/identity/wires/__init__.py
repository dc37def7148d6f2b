"""Readers of each API's messages, into one canonical form."""
