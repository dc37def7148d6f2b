"""The model's view of a transcript: message groups, and the place of each message."""
