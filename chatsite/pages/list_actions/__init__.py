"""What people do to several conversations of their list at once."""
