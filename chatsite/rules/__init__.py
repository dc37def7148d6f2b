"""The rules that a person states in a conversation, as a leaf app: found when a message
is stored, confirmed or dismissed by the person, and read for every request."""
