"""Actions on several conversations of the list at once."""
