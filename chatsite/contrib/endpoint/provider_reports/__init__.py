"""What providers say about a conversation, beside what this site finds itself."""
