"""The tables of the execution state: turns with calls of tools and files of their
results, jobs, and what a person has used and prefers. What was said lives in
memory.models.
"""

from .job import Job
from .people import Allowance, Preferences, Presence
from .result_file import ResultFile
from .tool_call import ToolCall
from .turn import FAILING_FIRST, Turn

__all__ = [
    "FAILING_FIRST",
    "Allowance",
    "Job",
    "Preferences",
    "Presence",
    "ResultFile",
    "ToolCall",
    "Turn",
]
