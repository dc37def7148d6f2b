"""What clients send, kept: bodies in pieces that are stored once, and the conversation
that each goes on."""
