"""Branches of one conversation.

A message that is edited continues beside its earlier version, and both are shown as one
conversation. Each branch is a conversation with a view of its own.
"""
