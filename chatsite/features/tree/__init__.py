"""Branches of one conversation: a message that is said in another way
goes on beside what it said before, and both are shown as one conversation. Each branch
is a conversation underneath, with a view of its own.
"""
