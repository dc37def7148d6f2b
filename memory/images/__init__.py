"""Images in a request: which are sent with their messages, and their bytes."""
