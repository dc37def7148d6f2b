"""Tool calls and their results in a request: in order, and shortened."""
