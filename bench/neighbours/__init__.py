"""How long one person waits for the first word while another does the worst at one of
the site's doors. `python -m bench.neighbours [DOOR ...]`; doors.py has the doors.
"""
