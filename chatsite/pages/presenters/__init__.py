"""What a template shows, read from the tables as plain values; no request, no HTML."""
