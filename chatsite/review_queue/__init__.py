"""The review queue, as a leaf app: what staff should look at, who does, and what came
of it.
"""
