"""The rules of the memory: pure functions over LangChain messages, without Django.

What is read and written is decided by the callers. Start at plan.py and compose.py.
"""
