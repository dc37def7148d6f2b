"""What people say of themselves, as a leaf app: found when a message is stored, kept or
dismissed by the person, and sent in their other conversations."""
