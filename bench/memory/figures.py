"""What a run gives: the figures of every contestant."""

from dataclasses import dataclass
from typing import Any

from .stress import Survival

# Names of this project's own contestants begin with it.
OURS = "Windowpane"


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one contestant: a report per set of conversations, and the stress tests."""

    name: str
    reports: dict[str, dict[str, Any]]
    survival: Survival


@dataclass(frozen=True, slots=True)
class Results:
    figures: list[Figures]
    # Number of conversations per set.
    sets: dict[str, int]
    versions: dict[str, str]
