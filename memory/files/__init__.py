"""The long files of conversations, of which requests have passages."""
