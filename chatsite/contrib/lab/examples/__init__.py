"""Replies marked as examples, with the answer that should have been given.

They are exported for training and evaluation, and other models answer them.
"""
