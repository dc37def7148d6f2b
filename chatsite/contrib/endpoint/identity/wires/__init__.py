"""The wires: how each writes messages, read into one canonical form."""
