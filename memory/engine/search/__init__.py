"""The search of a conversation, as pure functions: reading, ranking and excerpts."""
