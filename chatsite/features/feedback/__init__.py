"""Feedback on a reply: good or bad, and a word why."""
