"""The life of a reply: requested, claimed, run, checkpointed, ended; and its limits.

lifecycle.py has the transitions, each one short transaction; runner.py works turns off.
"""
