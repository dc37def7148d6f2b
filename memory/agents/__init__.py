"""The same memory for LangChain agents, without Django. Start at middleware.py."""
