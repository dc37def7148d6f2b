"""The labels that people give to their conversations, in the database. A conversation
can have several; with or without them it stays where it is."""
