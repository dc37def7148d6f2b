"""Real clients, unchanged, in a scripted conversation with tools."""
