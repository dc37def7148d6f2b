"""Replies tried again in another way: beside the one that was given, and never in its
place.
"""
