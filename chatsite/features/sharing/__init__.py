"""Links that show a conversation to the public: the owner's dialog and the shared page.

views.py has the public pages and reads no session; dialog.py and parts.py are for the
owner. link_contents.py decides what a link shows.
"""
