"""What a search of a conversation reads, ranks and shows, as pure functions."""
