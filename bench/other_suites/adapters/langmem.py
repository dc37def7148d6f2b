"""The import alone, for LangMem's tests of `langmem.short_term.summarization`."""

from memory.agents.langmem import (
    RunningSummary,
    SummarizationNode,
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
