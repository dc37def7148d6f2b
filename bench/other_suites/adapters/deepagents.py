"""For Deep Agents' tests of `deepagents.middleware.summarization`: the import alone."""

from typing import Any

from deepagents.middleware import summarization as original

from memory.agents.deepagents import SummarizationMiddleware

__all__ = ["SummarizationMiddleware"]


def __getattr__(name: str) -> Any:
    """What else they import is the library's own."""
    return getattr(original, name)
