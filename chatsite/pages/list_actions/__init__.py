"""What people do to their list: labels, and several conversations at once."""
