"""Experiments over a sample: several conversations, drawn by a seed and played through
up to four policies, beside their own.
"""
