"""The measurements of one entrance, and the table of all of them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from bench.memory.table import row

# The seconds that another user may be late by.
LATE = 0.5
# Answers that are named for each entrance, the most frequent first.
MOST_ANSWERS = 5
TITLES = ("entrance", "quiet", "under attack", "late by", "what the attacker got")


@dataclass
class Figures:
    """Seconds that the neighbour waited, and the attacker's answers."""

    name: str
    quiet: list[float] = field(default_factory=list)
    attacked: list[float] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)

    @property
    def late(self) -> float:
        """Return the usual delay of the word."""
        return median(self.attacked) - median(self.quiet)

    @property
    def latest(self) -> float:
        """Return the largest delay of the word."""
        return max(self.attacked) - median(self.quiet)

    @property
    def is_late(self) -> bool:
        return self.latest > LATE


def write_table(results: Sequence[Figures]) -> str:
    return "\n".join(_write_rows(results))


def _write_rows(results: Sequence[Figures]) -> Iterator[str]:
    yield row(TITLES)
    yield row(["---", *["---:"] * 3, "---"])
    for each in results:
        late = f"{max(each.late, 0):.2f} / {max(each.latest, 0):.2f}"
        yield row(
            [
                each.name,
                _spread(each.quiet),
                _spread(each.attacked),
                f"**{late}**" if each.is_late else late,
                name_answers(each.answers),
            ]
        )


def _spread(seconds: Sequence[float]) -> str:
    return f"{median(seconds):.2f} / {max(seconds):.2f}"


def name_answers(answers: Counter[str]) -> str:
    named = [f"{count:,} {name}" for name, count in answers.most_common(MOST_ANSWERS)]
    return ", ".join(named) or "nothing"
