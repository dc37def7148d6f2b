"""The result of an experiment for its page.

A table with the costs of both memories, and a chart of their prompts.
"""

from collections.abc import Callable

from django.utils.translation import gettext as _

from chatsite.review.charts.drawing import (
    Chart,
    ChartTable,
    Series,
    draw_lines,
    format_percent,
    group_points,
    to_digits,
)

from .comparing import Side
from .models import Experiment
from .replay_steps import PlayedTurn, ReplaySteps, known_values


def list_measures() -> tuple[tuple[str, str, int, Callable[..., str]], ...]:
    """Return the measures of a comparison.

    Each has a label, the attribute of a side, a direction (1 if more is better, -1
    if less is, 0 if neither), and a function that formats the value.
    """
    return (
        (_("Turns compared"), "turns", 0, to_digits),
        (_("Prompt tokens per turn"), "mean_prompt", -1, to_digits),
        (_("Of these cacheable, estimated"), "cached_share", 1, format_percent),
        (_("Largest prompt"), "largest", -1, to_digits),
        (_("Tokens of the summariser"), "summariser", -1, to_digits),
        (_("Cost (uncached tokens)"), "cost", -1, to_digits),
        (_("Facts missing from the view"), "facts_nowhere", -1, to_digits),
    )


def list_costs(experiment: Experiment) -> list[tuple[str, str, str]]:
    """Return each measure's label, the real memory's value and the tried one's.

    One conversation does not show which is better; a sample does.
    """
    real, tried = (
        Side(**known_values(Side, experiment.result["sides"][name]))
        for name in ("real", "experiment")
    )
    lines = []
    for label, name, _better, write in list_measures():
        one = getattr(real, name)
        # No requests are known of a conversation that was imported or made elsewhere.
        was = write(one) if real.turns or one else "–"
        lines.append((label, was, write(getattr(tried, name))))
    return lines


def draw_sides(experiment: Experiment, steps: ReplaySteps) -> Chart:
    """Draw prompt tokens per turn of both memories, and the tried one's compactions."""
    name, title = "experiment", _("Prompt tokens per turn")
    if not steps.turns:
        return Chart(name, title, message=_("No turn was replayed."))
    turns = (PlayedTurn(*each) for each in experiment.result["real"]["turns"])
    real = {turn.seq: turn.tokens for turn in turns}
    step, groups, numbers = group_points(steps.turns)
    was = [
        max((real[turn.seq] for turn in group if turn.seq in real), default=None)
        for group in groups
    ]
    tried = [max(turn.tokens for turn in group) for group in groups]
    marks = [
        (
            (each.turn - 0.5) / step - 0.5 * (step > 1),
            f"#{each.first_seq}–#{each.last_seq}",
        )
        for each in steps.versions
    ]
    return draw_lines(
        name,
        title,
        _("Turns: %(turns)s; summaries and merges in the experiment: %(summaries)s.")
        % {
            "turns": to_digits(len(steps.turns)),
            "summaries": to_digits(len(steps.versions)),
        },
        [
            Series("second", _("original"), was, "square"),
            Series("main", _("with the policy that was tried"), tried),
        ],
        numbers,
        marks=marks,
        mark_label=_("a summary in the experiment"),
        table=ChartTable(
            (_("Turn"), _("Message"), _("Original"), _("Tried")),
            tuple(
                (numbers[n], f"#{group[0].seq}", to_digits(was[n]), to_digits(tried[n]))
                for n, group in enumerate(groups)
            ),
        ),
    )
