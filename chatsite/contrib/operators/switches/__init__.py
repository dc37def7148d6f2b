"""Switches: what staff have switched off at once, and why."""
