"""Announcements: what staff tell everyone, at the top of every page."""
