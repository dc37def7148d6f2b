"""Deep Agents' summarization over the engine: only the import changes.

The model can read summarised messages again, in a file of the backend that the summary
names. Deep Agents itself is not needed. ../README.md has the differences.
"""

from .arguments import TruncateArgsSettings
from .factories import (
    compute_summarization_defaults,
    create_summarization_middleware,
    create_summarization_tool_middleware,
)
from .history import SummarizationEvent, SummarizationState
from .middleware import SummarizationMiddleware
from .tool import SummarizationToolMiddleware

__all__ = [
    "SummarizationEvent",
    "SummarizationMiddleware",
    "SummarizationState",
    "SummarizationToolMiddleware",
    "TruncateArgsSettings",
    "compute_summarization_defaults",
    "create_summarization_middleware",
    "create_summarization_tool_middleware",
]
