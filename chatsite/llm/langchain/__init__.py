"""Chat models that LangChain makes, beside the client of OpenAI-compatible servers."""
