"""Rules that a user states for a whole conversation.

How they are found, which later ones replace them, and which fit into a request.
"""
