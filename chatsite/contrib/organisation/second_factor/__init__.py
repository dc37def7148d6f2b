"""A second factor beside the password: a code of an app, or a passkey.

Imported only if SECOND_FACTOR is on.
"""
