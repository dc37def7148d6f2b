"""Results of a run: the figures of every contestant."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .rules import RuleSurvival
from .stress import Survival

# Names of this project's own contestants begin with it.
OURS = "Windowpane"


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one contestant: a report per set of conversations, the hash of
    each request that it sent there, per conversation, and the fate of stated facts and
    rules.
    """

    name: str
    reports: dict[str, dict[str, Any]]
    hashes: dict[str, dict[str, list[str]]]
    survival: Survival
    rules: dict[str, RuleSurvival]

    def digest(self, name: str) -> str:
        """The first characters of the hash of all requests of a set: two runs with the
        same one sent the same."""
        hashes = "".join(each for some in self.hashes[name].values() for each in some)
        return hashlib.sha256(hashes.encode()).hexdigest()[:8]


@dataclass(frozen=True, slots=True)
class Results:
    figures: list[Figures]
    # Number of conversations per set.
    sets: dict[str, int]
    versions: dict[str, str]


def list_requests(results: Results) -> Iterator[str]:
    """Contestant, set, conversation, place and SHA-256, between tabs."""
    for each in results.figures:
        for name, conversations in each.hashes.items():
            for id_, hashes in conversations.items():
                for place, sha256 in enumerate(hashes, start=1):
                    yield f"{each.name}\t{name}\t{id_}\t{place}\t{sha256}\n"
