"""Facts that users state about themselves, and how they are found."""
