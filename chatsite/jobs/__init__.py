"""Work that takes longer than a request: queued, run, shown, cancelled.

Replies are turns, not jobs. Start at queue.py; tasks.py runs jobs in the event loop.
"""
