"""Announcements, as a leaf app: what staff tell everyone, at the top of every page."""
