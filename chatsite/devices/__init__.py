"""Where a person is logged in, as a leaf app: a list on the account page, of which each
can be logged out. One row stands for one session and goes with it.
"""
