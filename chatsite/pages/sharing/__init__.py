"""Links that show a conversation to strangers: the dialog of its owner, and the page
that they open.

What a link shows is decided in chatsite/transfer/shares.py. Nothing here but links.py
reads the session. Start at views.py.
"""
