"""Rules that a person states for a whole conversation: how they are found, which later
ones replace them, and which of them fit into a request."""
