"""Retention, as a leaf app: what is too old is deleted every night."""
