"""The protocol between processes and browsers: events, errors and the channel layer."""
