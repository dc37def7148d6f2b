"""Recorded conversations, replayed under a policy: their costs and recall."""
