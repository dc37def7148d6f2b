"""What people say of themselves: found when a message is stored, kept or
dismissed by the person, and sent in their other conversations."""
