"""Compares the memory engine with those of other projects, in one run.

Every system gets the same conversations and the same summariser, and is driven
through its public API. Run it with `python -m bench.memory` in .venv-bench.
"""
