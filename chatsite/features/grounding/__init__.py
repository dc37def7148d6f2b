"""Origins of an answer: the terms of a reply, looked up in its request."""
