"""The timeline of a conversation, and a reply with its request."""
