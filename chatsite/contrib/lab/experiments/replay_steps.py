"""The steps of an experiment as plain values, to and from JSON.

They hold every turn, and every summary once; any turn's view follows from them.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

from memory.engine.compose import SummaryBlock


@dataclass(frozen=True, slots=True)
class PlayedTurn:
    """One request for a reply: the number of its message, and its size."""

    seq: int
    tokens: int
    cached: int
    # The numbers of the messages that were recalled for it.
    recalled: list[int] = field(default_factory=list)
    # For a real turn, the primary key of its request in the table of model calls.
    call: int | None = None


@dataclass(frozen=True, slots=True)
class Version(SummaryBlock):
    """One summary, made after `turn` turns; it replaces others."""

    turn: int = 0
    replaces: list[int] = field(default_factory=list)

    @property
    def is_trimmed(self) -> bool:
        """True if the messages only left the window; an erased text had tokens."""
        return not self.text and not self.tokens


@dataclass(slots=True)
class ReplaySteps:
    """The steps of an experiment so far.

    `of` is a hash of the numbers of the played messages: if it changes while no
    process plays, the experiment starts again.
    """

    of: str
    turns: list[PlayedTurn] = field(default_factory=list)
    versions: list[Version] = field(default_factory=list)
    pinned: list[int] = field(default_factory=list)
    place: int = 0
    failures: int = 0

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        values = known_values(cls, value)
        values["turns"] = [PlayedTurn(*each) for each in value["turns"]]
        values["versions"] = [Version(**each) for each in value["versions"]]
        return cls(**values)

    def to_json(self) -> dict[str, Any]:
        values = asdict(self)
        values["turns"] = [list(turn.values()) for turn in values["turns"]]
        return values

    def versions_at(self, turn: int) -> list[Version]:
        """Return the summaries in force after `turn` turns, by their messages."""
        made = [each for each in self.versions if each.turn <= turn]
        gone = {number for each in made for number in each.replaces}
        found = (each for each in made if each.version not in gone)
        return sorted(found, key=lambda each: each.first_seq)


def known_values(kind: type, stored: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a dataclass's fields; earlier experiments stored more."""
    names = [each.name for each in fields(kind)]
    return {name: stored[name] for name in names if name in stored}


def without_words(result: dict[str, Any], seq: int) -> dict[str, Any]:
    """Return a stored result without the texts that cover message `seq`.

    The facts of all messages are removed, too; the numbers stay.
    """
    done = result["steps"]
    versions = [
        {**each, "text": ""} if each["first_seq"] <= seq <= each["last_seq"] else each
        for each in done["versions"]
    ]
    sides = result.get("sides", {})
    return {
        **result,
        "steps": {**done, "versions": versions},
        "sides": {name: {**side, "lost": []} for name, side in sides.items()},
    }


def name_messages(seqs: Iterable[int]) -> str:
    return hashlib.sha256(",".join(map(str, seqs)).encode()).hexdigest()
