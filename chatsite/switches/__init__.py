"""Switches, as a leaf app: what staff have switched off at once, and why."""
