"""The endpoint for other clients.

It offers the APIs that clients already use, stores what they send, and shows it here.
"""
