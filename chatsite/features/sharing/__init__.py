"""Links that show a conversation to strangers: the dialog of its owner,
and the page that they open.

views.py has what strangers get and reads no session; dialog.py and parts.py are for the
owner. What a link shows is decided in shown.py.
"""
