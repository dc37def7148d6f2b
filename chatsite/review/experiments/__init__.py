"""The policy lab: a stored conversation is played through another policy, beside the
real one and without touching any of its rows.
"""
