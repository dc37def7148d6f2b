"""Labels that users give to their conversations.

A conversation can have several; with or without them it keeps its place in the list.
"""
