"""Policy experiments: a stored conversation, played through another policy beside the
real one and without touching any of its rows.
"""
