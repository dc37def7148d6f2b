"""Formats of dates, where Django's differ from those of the pages."""
