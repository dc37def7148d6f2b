"""Comparison of two requests of a conversation, side by side.

Shows where the provider's cache ends, why, and how much each part cost.
"""
