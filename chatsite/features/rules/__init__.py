"""The rules that a person states in a conversation: found when a message
is stored, confirmed or dismissed by the person, and read for every request."""
