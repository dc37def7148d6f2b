"""LangMem's short-term memory on this engine: a change of the import is enough.

The names and keywords are those of `langmem.short_term`. What is different loses
nothing: whatever counts as summarised was read by the model, the newest user message
stays, and a summariser that fails changes nothing. ../README.md has the list.
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
