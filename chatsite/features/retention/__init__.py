"""Retention: what is too old is deleted every night."""
