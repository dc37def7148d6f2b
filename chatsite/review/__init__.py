"""The pages for staff in the admin: conversations, summaries, requests, charts.

Nothing here changes what users wrote; actions go through the services of memory/ and
turns/. Start at admin/conversations.py and timeline/.
"""
