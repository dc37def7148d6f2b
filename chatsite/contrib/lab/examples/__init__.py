"""Replies marked as examples: what should have been said, exported for
training and evaluation, and answered again by other models.
"""
