"""Switches, limits, announcements and traces for operators of large sites."""
