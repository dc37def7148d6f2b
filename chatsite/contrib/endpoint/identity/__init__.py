"""Which conversation does a client's request go on? Pure functions, without Django.

`history.py` reads a body into canonical messages and their chain, `decision.py` finds
where that chain goes on, by what a store (`known.py`) answers. README.md has the
rule for other programs to build, with test vectors.
"""
