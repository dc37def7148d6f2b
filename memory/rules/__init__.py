"""The rules in a request: where they come from, and how a request refers to them."""
