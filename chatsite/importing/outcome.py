"""What came of a file, as its job keeps it and as the page shows it."""

from dataclasses import dataclass, field
from typing import Any

from chatsite.turns.models import Job
from memory import library
from memory.models import Conversation

KIND = "import"
MAX_TOLD = 50


@dataclass(slots=True)
class Outcome:
    """What was stored or was there before, and what was refused or left out and why."""

    imported: list[Conversation] = field(default_factory=list)
    known: list[Conversation] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    untold: int = 0

    @classmethod
    def of(cls, job: Job) -> "Outcome":
        """Without what was deleted since."""
        imported, known = (job.result.get(name, []) for name in ("imported", "known"))
        rows = library.list_own(job.user).filter(uuid__in=[*imported, *known])
        found = {str(row.uuid): row for row in rows}
        return cls(
            imported=[found[uuid] for uuid in imported if uuid in found],
            known=[found[uuid] for uuid in known if uuid in found],
            told=job.result.get("told", []),
            untold=job.result.get("untold", 0),
        )

    def tell(self, why: str) -> None:
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
