"""Experiments over a sample of conversations.

Several conversations are drawn by a seed, and played through their own policy and
up to four others.
"""
