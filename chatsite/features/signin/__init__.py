"""How people get into the site besides their password, and back into it: links
by e-mail and invitations here.
"""
