"""Results of a sample: a table of measures and policies, and a CSV file.

The table covers conversations of which everything was played.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from django.db.models import F
from django.utils.translation import gettext as _

from chatsite.pages.forms import preset_name
from chatsite.review.csv_lists import write_line
from memory.engine.policy import DEFAULT_PRESET

from ..comparing import Side
from ..models import Experiment, Sample
from ..replay_steps import known_values
from ..report import list_measures
from .drawing import REPLAYS
from .verdicts import PolicyVerdict, Spread, average_replays, judge_policy

BASELINE = ("as it was, replayed", "as it was, replayed again")
HEAD = (
    *("conversation", "column", "policy", "state", "turns", "prompt_tokens_per_turn"),
    *("cacheable_share", "largest_prompt", "summariser_tokens", "cost"),
    *("facts_nowhere", "tokens_spent"),
)


def read_rows(sample: Sample) -> list[Experiment]:
    """Return the experiments by conversation, without their steps, which can be long.

    Each has the `uuid` of its conversation and its `side`, which is None if it was not
    played to its end.
    """
    rows = sample.experiments.order_by("conversation_id", "column").defer("result")
    side = F("result__sides__experiment")
    found = list(rows.annotate(uuid=F("conversation__uuid"), side=side))
    for row in found:
        is_whole = row.state == Experiment.State.DONE and row.side
        row.side = Side(**known_values(Side, row.side)) if is_whole else None
    return found


def name_columns(sample: Sample) -> list[str]:
    """Return titles for the columns of the policies: their presets."""
    names = [
        preset_name(each.get("preset", DEFAULT_PRESET)) for each in sample.policies
    ]
    return [f"{number}. {name}" for number, name in enumerate(names, 1)]


@dataclass(frozen=True, slots=True)
class Cell:
    """A mean, the range of the middle half of conversations, and the mean change."""

    mean: str
    middle: str
    change: str = ""
    is_better: bool = False


def list_replays(rows: Sequence[Experiment]) -> list[tuple[str, list[Experiment]]]:
    """Return each conversation's short id with its experiments, for links to them."""
    groups = groupby(rows, attrgetter("uuid"))
    return [(str(uuid)[:8], list(group)) for uuid, group in groups]


def group_whole(rows: Sequence[Experiment], columns: int) -> list[list[Side]]:
    """Return the sides of all columns by conversation; incomplete ones are left out."""
    groups = groupby(rows, attrgetter("conversation_id"))
    found = ([row.side for row in group if row.side] for _, group in groups)
    return [sides for sides in found if len(sides) == columns]


def compare_policies(
    groups: Sequence[Sequence[Side]], policies: int
) -> list[tuple[str, list[Cell]]]:
    """Return a row for each measure: its label, the baseline, and each policy."""
    lines = []
    for label, name, direction, write in list_measures():
        values = [[getattr(side, name) for side in sides] for sides in groups]
        columns = list(zip(*values, strict=True))
        first, second, *tried = columns or [()] * (REPLAYS + policies)
        base, chance = average_replays(first, second)
        middle = _show_middle(base, write)
        cells = [Cell(write(base.mean), middle, f"± {write(chance)}")]
        verdicts = (judge_policy(first, second, each, direction) for each in tried)
        cells += [_show_verdict(each, base, write) for each in verdicts]
        lines.append((label, cells))
    return lines


def _show_verdict(
    found: PolicyVerdict, base: Spread, write: Callable[..., str]
) -> Cell:
    change = ""
    if found.change:
        share = f"{found.change / base.mean:+.0%}" if base.mean else ""
        change = share or f"+{write(found.change)}"
    return Cell(
        write(found.spread.mean),
        _show_middle(found.spread, write),
        change,
        found.is_better,
    )


def _show_middle(spread: Spread, write: Callable[..., str]) -> str:
    return f"{write(spread.low)}–{write(spread.high)}"


def write_replays(sample: Sample, rows: Sequence[Experiment]) -> Iterator[str]:
    """Yield a CSV line for each experiment.

    The numbers of experiments that were not played to their end are empty.
    """
    names = [*BASELINE, *(each.get("preset", "") for each in sample.policies)]
    yield write_line(HEAD)
    for row in rows:
        numbers: list[object] = [""] * 7
        if row.side:
            numbers = [getattr(row.side, each) for _l, each, _d, _w in list_measures()]
        values = (row.uuid, row.column, names[row.column], row.state)
        yield write_line((*values, *numbers, row.spent))


def describe_draw(sample: Sample) -> str:
    """Describe in one line the filters that the sample was drawn with."""
    drawn = sample.drawn_from
    parts = [_("at least %(least)s messages") % {"least": drawn.get("least", "–")}]
    if preset := drawn.get("preset"):
        parts.append(preset_name(preset))
    if model := drawn.get("model"):
        parts.append(model)
    if days := drawn.get("days"):
        parts.append(_("changed in the last %(days)s days") % {"days": days})
    return " · ".join(parts)
