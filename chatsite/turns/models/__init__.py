"""The tables of the execution state: turns, jobs, and what a person has used and
prefers. What was said lives in memory.models.
"""

from .job import Job
from .people import Allowance, Preferences, Presence
from .turn import FAILING_FIRST, Turn

__all__ = [
    "FAILING_FIRST",
    "Allowance",
    "Job",
    "Preferences",
    "Presence",
    "Turn",
]
