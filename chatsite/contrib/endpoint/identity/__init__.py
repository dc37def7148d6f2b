"""Find the conversation that a client's request continues; no Django needed.

`history.py` reads a body into canonical messages and their chain. `deciding.py` finds
where that chain continues, from what a store (`known.py`) answers, and returns a
`decision.py::Decision`. README.md has the rule for other implementations, with test
vectors.
"""
