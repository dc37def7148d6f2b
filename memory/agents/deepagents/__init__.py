"""Deep Agents' summarization over the engine: a change of import is enough.

What was summarised can be read again by the model, in a file of the backend that the
summary names. Deep Agents itself is not needed. What is different is in
../README.md.
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
