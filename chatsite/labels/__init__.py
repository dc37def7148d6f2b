"""Labels that people give to their conversations, as a leaf app. A conversation can
have several; with or without them it stays where it is in the list.
"""
