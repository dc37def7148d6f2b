"""Replies marked as examples, as a leaf app: what should have been said, exported for
training and evaluation, and answered again by other models.
"""
