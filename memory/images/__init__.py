"""Images in a request: which go along with their messages, and where the bytes are."""
