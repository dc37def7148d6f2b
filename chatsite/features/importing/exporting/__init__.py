"""Files that people and staff take away: one conversation, an account, many."""
