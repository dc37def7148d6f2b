"""Compaction with the database.

It decides what is summarised next, by which process, and how the summary comes into
force. The rules are in engine/plan.py. Start at compactor.py.
"""
