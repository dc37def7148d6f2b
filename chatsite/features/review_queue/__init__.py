"""The review queue: items for staff to look at, their assignees and outcomes."""
