"""What came of a file, as its job keeps it and as the page shows it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from chatsite.turns.models import Job
from memory import library
from memory.models import Conversation

KIND = "import"
MAX_TOLD = 50


@dataclass(slots=True)
class Outcome:
    """What was stored, was there before, or was refused with the reason."""

    imported: list[Conversation] = field(default_factory=list)
    known: list[Conversation] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    untold: int = 0

    @classmethod
    def of(cls, job: Job) -> "Outcome":
        """Without what was deleted since."""
        found = {str(row.uuid): row for row in _rows(job)}

        def still(name: str) -> list[Conversation]:
            uuids = job.result.get(name, [])
            return [found[uuid] for uuid in uuids if uuid in found]

        told, untold = job.result.get("told", []), job.result.get("untold", 0)
        return cls(still("imported"), still("known"), told, untold)

    def refuse(self, why: str) -> None:
        if len(self.told) < MAX_TOLD:
            self.told.append(why)
        else:
            self.untold += 1

    def dump(self) -> dict[str, Any]:
        return {
            "imported": [str(row.uuid) for row in self.imported],
            "known": [str(row.uuid) for row in self.known],
            "told": self.told,
            "untold": self.untold,
        }


def _rows(job: Job) -> Iterable[Conversation]:
    uuids = [*job.result.get("imported", []), *job.result.get("known", [])]
    return library.own(job.user).filter(uuid__in=uuids)
