"""Compares what agents' memories do inside one long turn of tool calls.

Every system gets the same results of the same tool, a summariser that keeps every fact
it reads, and a strict provider. Run it with `python -m bench.rounds` in .venv-bench.
"""
