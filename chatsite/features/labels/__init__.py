"""Labels that people give to their conversations. A conversation can
have several; with or without them it stays where it is in the list.
"""
