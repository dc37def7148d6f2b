"""The tests that other libraries have of their summaries, run against this engine."""
