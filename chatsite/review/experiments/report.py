"""The result of an experiment for its page: the costs of both memories in rows of a
table, and the chart of both lines.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from chatsite.llm import providers
from memory.engine.policy import CACHED_PRICE
from memory.evaluation.metrics import WRITTEN_PRICE

from ..charts.conversation import MAX_POINTS
from ..charts.drawing import WIDE, Chart, Series, Table, draw_lines, show
from ..models import Experiment
from .comparing import Side
from .steps import Steps, Turn


@dataclass(frozen=True, slots=True)
class Line:
    """One measure of both memories; `better` is "real", "experiment" or neither."""

    label: str
    real: str
    experiment: str
    better: str = ""


def compare(experiment: Experiment) -> list[Line]:
    sides = experiment.result["sides"]
    real, tried = Side(**sides["real"]), Side(**sides["experiment"])
    has_real = real.turns > 0
    lines = [
        *_prompts(real, tried),
        *_spending(real, tried),
        *_costs(real, tried, experiment),
        *_memory(real, tried),
    ]
    return lines if has_real else [_without(line) for line in lines]


def _without(line: Line) -> Line:
    """No request of the real one is known: an import, or it was made elsewhere."""
    return Line(
        line.label,
        "–" if line.real in ("0", "0\u00a0%") else line.real,
        line.experiment,
    )


def _line(label: str, real: float, tried: float, *, less: bool | None = True) -> Line:
    """`less`: whether less is better; None says nothing of it."""
    better = ""
    if less is not None and real != tried:
        better = "experiment" if (tried < real) is less else "real"
    return Line(label, show(real), show(tried), better)


def _prompts(real: Side, tried: Side) -> list[Line]:
    return [
        Line(_("Turns compared"), show(real.turns), show(tried.turns)),
        _line(_("Prompt tokens per turn"), _mean(real), _mean(tried)),
        _line(_("Largest prompt"), real.largest, tried.largest),
        _line(_("Prompt tokens in all"), real.prompt_tokens, tried.prompt_tokens),
        _shares(_("Of these cacheable, estimated"), _cached(real), _cached(tried)),
    ]


def _shares(label: str, real: float, tried: float) -> Line:
    better = "" if real == tried else "experiment" if tried > real else "real"
    return Line(label, _percent(real), _percent(tried), better)


def _percent(share: float) -> str:
    return f"{share:.0%}".replace("%", "\u00a0%")


def _mean(side: Side) -> int:
    return round(side.prompt_tokens / side.turns) if side.turns else 0


def _cached(side: Side) -> float:
    return side.cached / side.prompt_tokens if side.prompt_tokens else 0.0


def _spending(real: Side, tried: Side) -> list[Line]:
    return [
        _line(_("Requests of the summariser"), real.requests, tried.requests),
        _line(_("Tokens it read"), real.read, tried.read),
        _line(_("Tokens it wrote"), real.written, tried.written),
        Line(_("Summaries that could not be used"), "–", show(tried.rejected)),
    ]


def _costs(real: Side, tried: Side, experiment: Experiment) -> list[Line]:
    lines = [_line(_("Cost in fresh tokens"), _weighted(real), _weighted(tried))]
    if settings.PRICE_INPUT and not providers.is_demo(experiment.model):
        one, other = _dollars(real), _dollars(tried)
        better = "" if one == other else "experiment" if other < one else "real"
        lines.append(
            Line(_("Cost in dollars"), f"${one:,.4f}", f"${other:,.4f}", better)
        )
    return lines


def _fresh(side: Side) -> float:
    """Tokens that are read, those of a provider's cache at their price."""
    return side.prompt_tokens - (1 - CACHED_PRICE) * side.cached + side.read


def _weighted(side: Side) -> int:
    return round(_fresh(side) + WRITTEN_PRICE * side.written)


def _dollars(side: Side) -> float:
    cost = _fresh(side) * settings.PRICE_INPUT + side.written * settings.PRICE_OUTPUT
    return cost / 1_000_000


def _memory(real: Side, tried: Side) -> list[Line]:
    return [
        _line(
            _("Rewritten, median of a message"),
            real.rewrites_median,
            tried.rewrites_median,
        ),
        _line(_("Rewritten at most"), real.rewrites_max, tried.rewrites_max),
        _line(
            _("Context at the end, tokens"), real.context_tokens, tried.context_tokens
        ),
        _line(_("Summaries at the end"), real.summaries, tried.summaries, less=None),
        _line(
            _("Messages in summaries"), real.in_summaries, tried.in_summaries, less=None
        ),
        _line(_("Messages in the window"), real.in_window, tried.in_window, less=None),
        _line(
            _("Facts in the window"),
            real.facts_in_window,
            tried.facts_in_window,
            less=None,
        ),
        _line(
            _("Facts in summaries alone"),
            real.facts_in_summaries,
            tried.facts_in_summaries,
            less=None,
        ),
        _line(_("Facts nowhere in the view"), real.facts_nowhere, tried.facts_nowhere),
    ]


def draw(experiment: Experiment, steps: Steps) -> Chart:
    """Prompt tokens per turn of both memories, with the compactions of the
    experiment."""
    name, title = "experiment", _("Prompt tokens per turn")
    if not steps.turns:
        return Chart(name, title, words=_("No turn was played."))
    real = {turn.seq: turn.tokens for turn in _real(experiment)}
    step = ceil(len(steps.turns) / MAX_POINTS)
    groups = [steps.turns[n : n + step] for n in range(0, len(steps.turns), step)]
    known = [[real[t.seq] for t in group if t.seq in real] for group in groups]
    return draw_lines(
        name,
        title,
        _("Turns: %(turns)s; summaries and merges in the experiment: %(folds)s.")
        % {"turns": show(len(steps.turns)), "folds": show(len(steps.versions))},
        [
            Series(
                "second",
                _("as it was"),
                [max(each, default=None) for each in known],
                "square",
            ),
            Series(
                "main",
                _("with the tried policy"),
                [max(t.tokens for t in g) for g in groups],
            ),
        ],
        [str(n * step + 1) for n in range(len(groups))],
        size=WIDE,
        x_label=_("turn"),
        y_label=_("tokens"),
        marks=[
            (
                (each.turn - 0.5) / step - 0.5 * (step > 1),
                f"#{each.first_seq}–#{each.last_seq}",
            )
            for each in steps.versions
        ],
        mark_label=_("a summary in the experiment"),
        table=_table(groups, known, step),
    )


def _real(experiment: Experiment) -> list[Turn]:
    return [Turn(*each) for each in experiment.result["real"]["turns"]]


def _table(
    groups: Sequence[Sequence[Turn]], known: Sequence[Sequence[int]], step: int
) -> Table:
    return Table(
        (_("Turn"), _("Message"), _("As it was"), _("Tried"), _("Cacheable")),
        tuple(
            (
                str(n * step + 1),
                f"#{group[0].seq}",
                show(max(was, default=None)),
                show(max(turn.tokens for turn in group)),
                show(max(turn.cached for turn in group)),
            )
            for n, (group, was) in enumerate(zip(groups, known, strict=True))
        ),
    )


def lost(experiment: Experiment, side: str) -> dict[str, Any]:
    found = experiment.result["sides"][side]
    return {"count": found["facts_nowhere"], "some": found["lost"]}
