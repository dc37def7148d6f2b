"""The import alone, for Deep Agents' tests of `deepagents.middleware.summarization`."""

from typing import Any

from deepagents.middleware import summarization as original

from memory.agents.deepagents import SummarizationMiddleware

__all__ = ["SummarizationMiddleware"]


def __getattr__(name: str) -> Any:
    """Return the library's own object for other names."""
    return getattr(original, name)
