"""People: signing up and in, the account page, usage, preferences, theme, sessions.

What they own is in memory/ and turns/. Start at chatsite/urls.py and views.py.
"""
