"""The tables of the execution state: turns, jobs, usage and preferences of users.

The messages themselves are in memory.models.
"""

from .job import JOB_LEASE, Job
from .leased_row import LeasedRow
from .people import Allowance, Preferences, Presence
from .turn import FAILING_FIRST, ONLY_ATTEMPT, TURN_LEASE, Turn

__all__ = [
    "FAILING_FIRST",
    "JOB_LEASE",
    "ONLY_ATTEMPT",
    "TURN_LEASE",
    "Allowance",
    "Job",
    "LeasedRow",
    "Preferences",
    "Presence",
    "Turn",
]
