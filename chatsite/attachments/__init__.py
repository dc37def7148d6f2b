"""Files that people attach to a message, as a leaf app: read as text, and kept until
the message takes them."""
