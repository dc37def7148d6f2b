"""LangMem's short-term memory over the engine: only the import changes.

The names and keywords are those of `langmem.short_term`. The differences lose nothing:
summarised messages were read by the model, the newest user message stays, and a
summariser that fails changes nothing. ../README.md has the list.
"""

from .node import SummarizationNode
from .summarization import (
    RunningSummary,
    SummarizationResult,
    asummarize_messages,
    summarize_messages,
)

__all__ = [
    "RunningSummary",
    "SummarizationNode",
    "SummarizationResult",
    "asummarize_messages",
    "summarize_messages",
]
