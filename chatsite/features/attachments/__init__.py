"""Files that people attach to a message: read as text, and kept until
the message takes them."""
