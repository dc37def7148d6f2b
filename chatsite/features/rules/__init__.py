"""The rules that a user states in a conversation.

They are detected when a message is stored, confirmed or dismissed by the user, and read
for every request.
"""
