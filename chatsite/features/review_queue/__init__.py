"""The review queue: what staff should look at, who does, and what came
of it.
"""
