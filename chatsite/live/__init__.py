"""The socket: what a browser sends and what it is pushed, with its limits.

Whole pages are in pages/, the states of a reply in turns/. Start at consumer.py.
"""
