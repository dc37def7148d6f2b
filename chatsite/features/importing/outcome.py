"""The outcome of an import, as its job stores it and as the page shows it."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from chatsite.turns.models import Job
from memory import library
from memory.models import Conversation

from .files.remainder import Remainder

KIND = "import"
MAX_TOLD = 50
COUNTS = ("untold", "images", "others")


@dataclass(slots=True)
class Outcome:
    """The conversations that were stored or known, and the reasons for the rest."""

    imported: list[Conversation] = field(default_factory=list)
    known: list[Conversation] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    untold: int = 0
    # Images that were imported with their messages; other files of the archive.
    images: int = 0
    others: int = 0
    # The parts of conversations that were not imported or not known, by kind.
    left: Remainder = field(default_factory=Remainder)

    @classmethod
    def from_job(cls, job: Job) -> "Outcome":
        """Return the stored outcome, without conversations that were deleted since."""
        imported, known = (job.result.get(name, []) for name in ("imported", "known"))
        rows = library.list_own(job.user).filter(uuid__in=[*imported, *known])
        found = {str(row.uuid): row for row in rows}
        return cls(
            imported=[found[uuid] for uuid in imported if uuid in found],
            known=[found[uuid] for uuid in known if uuid in found],
            notices=job.result.get("told", []),
            left=Remainder(Counter(job.result.get("left", {}))),
            **{name: job.result.get(name, 0) for name in COUNTS},
        )

    def add_reason(self, why: str) -> None:
        if len(self.notices) < MAX_TOLD:
            self.notices.append(why)
        else:
            self.untold += 1

    def dump_result(self) -> dict[str, Any]:
        return {
            "imported": [str(row.uuid) for row in self.imported],
            "known": [str(row.uuid) for row in self.known],
            "told": self.notices,
            "left": self.left.kinds,
            **{name: getattr(self, name) for name in COUNTS},
        }
