"""Trials: replies tried again in another way, beside the original one.

They never replace it.
"""
