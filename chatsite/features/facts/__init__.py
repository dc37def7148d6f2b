"""Facts that users state about themselves.

They are detected when a message is stored, kept or dismissed by the user, and sent in
the user's other conversations.
"""
