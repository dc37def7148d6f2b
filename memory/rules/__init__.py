"""The rules of a conversation in the database: found when a message is stored, kept
within bounds, and read for every request."""
