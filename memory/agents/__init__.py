"""Memory for LangChain agents, without Django. Start at middleware.py."""
