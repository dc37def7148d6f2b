"""Requests in *bound* mode: summaries replace the messages they cover.

What a client sends is stored as in *observe*. Start at `message_selection.py`.
"""
