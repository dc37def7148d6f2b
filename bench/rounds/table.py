"""The figures as a Markdown table: a row for each window and contestant."""

from collections.abc import Iterator, Mapping, Sequence

from bench.memory.figures import OURS
from bench.memory.table import head, row

from .play import ROUNDS, Turn

WINDOWS = (2_000, 6_000, 32_000)
# Characters of a result.
SIZES = (50, 500, 2_000, 5_000, 20_000)

Results = Mapping[tuple[int, str], Sequence[Turn]]


def write_table(results: Results, versions: Mapping[str, str]) -> str:
    named = ", ".join(f"{name} {known}" for name, known in versions.items())
    return "\n".join([f"Measured with {named}.", "", *_write_rows(results)])


def _write_rows(results: Results) -> Iterator[str]:
    sizes = " / ".join(f"{size:,}" for size in SIZES)
    yield from head(
        [
            "window",
            "memory",
            "requests",
            "over 95 %",
            "over the window",
            "largest",
            "refused",
            "without question",
            "without newest result",
            "requests to the summariser",
            f"facts alive of {ROUNDS}, results of {sizes}",
        ]
    )
    for (window, name), turns in results.items():
        yield row(
            [
                f"{window:,}",
                f"**{name}**" if name == OURS else name,
                _count_requests(turns),
                f"{sum(turn.over_limit for turn in turns)}",
                f"{sum(turn.over_window for turn in turns)}",
                f"{max(turn.largest for turn in turns):.0%}",
                f"{sum(turn.refused for turn in turns)}",
                f"{sum(turn.without_question for turn in turns)}",
                f"{sum(turn.without_result for turn in turns)}",
                f"{sum(turn.summaries for turn in turns):,}",
                " / ".join(str(turn.facts) for turn in turns),
            ]
        )


def _count_requests(turns: Sequence[Turn]) -> str:
    errors = sorted({turn.error for turn in turns if turn.error})
    return ", ".join([str(sum(turn.requests for turn in turns)), *errors])
