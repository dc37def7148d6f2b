"""A code of an app, or a passkey, beside the password. Loaded where SECOND_FACTOR
is on.
"""
