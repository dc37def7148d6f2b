"""Where a person is logged in: a list on the account page, of which each
can be logged out. One row stands for one session and goes with it.
"""
