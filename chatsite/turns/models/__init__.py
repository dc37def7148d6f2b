"""The tables of the execution state: turns, jobs, and what a person has used and
prefers. What was said lives in memory.models.
"""

from .job import JOB_LEASE, Job
from .people import Allowance, Preferences, Presence
from .turn import FAILING_FIRST, ONLY_ATTEMPT, TURN_LEASE, Turn, lease_duration

__all__ = [
    "FAILING_FIRST",
    "JOB_LEASE",
    "ONLY_ATTEMPT",
    "TURN_LEASE",
    "Allowance",
    "Job",
    "Preferences",
    "Presence",
    "Turn",
    "lease_duration",
]
