"""One module per memory: how a turn goes through its public API."""
