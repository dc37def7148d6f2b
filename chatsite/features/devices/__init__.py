"""The devices of a user: a list on the account page, from which each can be logged out.

One row represents one session and is deleted with it.
"""
