"""The rules of the memory: pure functions over LangChain messages, without Django.

Callers do all reading and writing. Start at compaction.py, the state machine, and
compose.py, which builds the context that a model receives.
"""
