"""Keys and requests in *bound*: what a client sends is stored as ever, and of what the
memory has summarised the summaries are sent instead. Start at `choosing.py`.
"""
