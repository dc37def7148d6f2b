"""The result of an experiment for its page: the costs of both memories in rows of a
table, and the chart of both lines.
"""

from math import ceil
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from chatsite.llm import providers
from chatsite.review.charts.conversation import MAX_POINTS
from chatsite.review.charts.drawing import (
    WIDE,
    Chart,
    Series,
    Table,
    draw_lines,
    percent,
    show,
)

from .comparing import Side
from .models import Experiment
from .steps import Steps, Turn


def compare(experiment: Experiment) -> list[dict[str, str]]:
    """Each measure of both memories; `better` is "real", "experiment" or neither."""
    sides = experiment.result["sides"]
    real, tried = Side(**sides["real"]), Side(**sides["experiment"])
    more, less, neither = True, False, None
    # The label, the attribute of a side, what is better, and how it is written.
    measures = [
        (_("Turns compared"), "turns", neither, show),
        (_("Prompt tokens per turn"), "mean_prompt", less, show),
        (_("Largest prompt"), "largest", less, show),
        (_("Prompt tokens, total"), "prompt_tokens", less, show),
        (_("Of these cacheable, estimated"), "cached_share", more, percent),
        (_("Requests of the summariser"), "requests", less, show),
        (_("Tokens it read"), "read", less, show),
        (_("Tokens it wrote"), "written", less, show),
        (_("Rejected summaries"), "rejected", neither, show),
        (_("Cost (uncached tokens)"), "cost", less, show),
        (_("Cost in dollars"), "dollars", less, lambda value: f"${value:,.4f}"),
        (_("Rewritten, median of a message"), "rewrites_median", less, show),
        (_("Most rewrites"), "rewrites_max", less, show),
        (_("Context at the end, tokens"), "context_tokens", less, show),
        (_("Summaries at the end"), "summaries", neither, show),
        (_("Messages in summaries"), "in_summaries", neither, show),
        (_("Messages in the window"), "in_window", neither, show),
        (_("Messages that only left the window"), "left", neither, show),
        (_("Facts in the window"), "facts_in_window", neither, show),
        (_("Facts in summaries alone"), "facts_in_summaries", neither, show),
        (_("Facts nowhere in the view"), "facts_nowhere", less, show),
    ]
    lines = []
    for label, name, better, write in measures:
        if name == "dollars" and not _has_price(experiment):
            continue
        one, other = getattr(real, name), getattr(tried, name)
        line = {"label": label, "real": write(one), "experiment": write(other)}
        # How many were rejected of the real ones is not known; and of a conversation
        # that was imported or made elsewhere, no request.
        if name == "rejected" or (not real.turns and not one):
            line["real"] = "–"
        if better is not neither and one != other:
            line["better"] = "experiment" if (other > one) is better else "real"
        lines.append(line)
    return lines


def _has_price(experiment: Experiment) -> bool:
    return bool(settings.PRICE_INPUT) and not providers.is_demo(experiment.model)


def draw(experiment: Experiment, steps: Steps) -> Chart:
    """Prompt tokens per turn of both memories, with the compactions of the
    experiment."""
    name, title = "experiment", _("Prompt tokens per turn")
    if not steps.turns:
        return Chart(name, title, message=_("No turn was replayed."))
    turns = (Turn(*each) for each in experiment.result["real"]["turns"])
    real = {turn.seq: turn.tokens for turn in turns}
    step = ceil(len(steps.turns) / MAX_POINTS)
    groups = [steps.turns[n : n + step] for n in range(0, len(steps.turns), step)]
    known = [[real[t.seq] for t in group if t.seq in real] for group in groups]
    was = [max(each, default=None) for each in known]
    tried = [max(turn.tokens for turn in group) for group in groups]
    numbers = [str(n * step + 1) for n in range(len(groups))]
    marks = []
    for each in steps.versions:
        place = (each.turn - 0.5) / step - 0.5 * (step > 1)
        marks.append((place, f"#{each.first_seq}–#{each.last_seq}"))
    return draw_lines(
        name,
        title,
        _("Turns: %(turns)s; summaries and merges in the experiment: %(folds)s.")
        % {"turns": show(len(steps.turns)), "folds": show(len(steps.versions))},
        [
            Series("second", _("as it was"), was, "square"),
            Series("main", _("with the tried policy"), tried),
        ],
        numbers,
        size=WIDE,
        x_label=_("turn"),
        y_label=_("tokens"),
        marks=marks,
        mark_label=_("a summary in the experiment"),
        table=Table(
            (_("Turn"), _("Message"), _("As it was"), _("Tried"), _("Cacheable")),
            tuple(
                (
                    numbers[n],
                    f"#{group[0].seq}",
                    show(was[n]),
                    show(tried[n]),
                    show(max(turn.cached for turn in group)),
                )
                for n, group in enumerate(groups)
            ),
        ),
    )


def lost(experiment: Experiment, side: str) -> dict[str, Any]:
    found = experiment.result["sides"][side]
    return {"count": found["facts_nowhere"], "some": found["lost"]}
