"""Feedback on a reply, as a leaf app: good or bad, and a word why."""
