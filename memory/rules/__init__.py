"""Rules in a request: their source, and the references to them."""
