"""The rules of the memory: pure functions over LangChain messages, without Django.

What is read and written is decided by the callers. Start at compaction.py, the state
machine, and compose.py, which makes what a model is sent.
"""
