"""The table of README.md: a row for each memory, a column for each kind of things."""

from collections.abc import Sequence

from bench.memory.figures import OURS

from .play import Survival
from .things import KINDS


def write_table(results: Sequence[Survival], lead: str) -> str:
    """Return the table: things word for word, and after a + more by a search."""
    head = ["", *KINDS, "all", "compactions"]
    rows = [head, ["---", *["---:"] * (len(head) - 1)], *map(_write_row, results)]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([f"{lead} {name_better(results)}", "", *lines])


def _write_row(result: Survival) -> list[str]:
    name = f"**{result.name}**" if result.name.startswith(OURS) else result.name
    cells = [_write_cell(result.whole[k], result.found[k]) for k in KINDS]
    total = _write_cell(result.whole.total(), result.found.total())
    return [name, *cells, total, f"{result.compactions} in {result.turns:,} turns"]


def _write_cell(whole: int, found: int) -> str:
    return f"{whole} + {found}" if found else str(whole)


def name_better(results: Sequence[Survival]) -> str:
    """Return a sentence on the kinds of which another memory has more word for word."""
    ours = next(each for each in results if each.name.startswith(OURS))
    others = [each for each in results if each is not ours]
    better = [
        kind
        for kind in KINDS
        if max(each.whole[kind] for each in others) > ours.whole[kind]
    ]
    if better:
        return f"Another memory has more of: {', '.join(better)}."
    return "Of no kind has another memory more."
