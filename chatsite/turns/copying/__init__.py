"""Conversations made of others: branches, and the turns and calls of copied rows."""
