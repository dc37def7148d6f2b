"""Files for users and staff to download: one conversation, an account, many."""
