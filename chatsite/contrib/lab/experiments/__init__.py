"""Policy experiments.

A stored conversation is played through another policy and compared with the
real one; no row of the conversation changes.
"""
