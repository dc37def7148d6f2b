"""The two views of a turn, or of the end, side by side.

A view has the summaries, with texts for staff who may read them, and the range of
messages in the window.
"""

from collections.abc import Iterable
from typing import Any

from django.db.models import Count, Max, Min

from chatsite.review.rights import Rights
from memory import context
from memory.models import ModelCall
from memory.versions import last_covered

from .models import Experiment
from .replay_steps import PlayedTurn, ReplaySteps

# The content that one memory sends, or would send: see _make_view.
View = dict[str, Any]


def at_end(
    experiment: Experiment, steps: ReplaySteps, rights: Rights
) -> dict[str, View]:
    conversation = experiment.conversation
    was = conversation.summaries.filter(
        version__in=experiment.result["real"]["versions"]
    ).order_by("first_seq")
    tried = steps.versions_at(len(steps.turns))
    is_done = experiment.state == Experiment.State.DONE or not steps.turns
    played = experiment.last_seq if is_done else steps.turns[-1].seq
    return {
        "real": _make_view(experiment, was, experiment.last_seq, rights),
        "experiment": _make_view(experiment, tried, played, rights),
    }


def at_turn(
    experiment: Experiment, steps: ReplaySteps, number: int, rights: Rights
) -> dict[str, View]:
    """Return both views of turn `number`, counted from 1.

    The tried view has the summaries made before the turn. The real one has the
    number of the reply, whose request the inspector shows; {} if none is known.
    """
    turn = steps.turns[number - 1]
    real = (PlayedTurn(*each) for each in experiment.result["real"]["turns"])
    call = next((each.call for each in real if each.seq == turn.seq), None)
    reply = ModelCall.objects.filter(pk=call).values("message__seq").first()
    values = {"recalled": turn.recalled, "tokens": turn.tokens}
    versions = steps.versions_at(number - 1)
    return {
        "real": {"reply": reply["message__seq"]} if reply else {},
        "experiment": _make_view(experiment, versions, turn.seq, rights) | values,
    }


def _make_view(
    experiment: Experiment, versions: Iterable[Any], last_seq: int, rights: Rights
) -> View:
    """Return the summaries with their texts, and the messages in the window."""
    rows = context.visible_messages(experiment.conversation)
    window = rows.filter(seq__gt=last_covered(versions), seq__lte=last_seq)
    return {
        "blocks": [(each, rights.show_text(each.text)) for each in versions],
        **window.aggregate(first=Min("seq"), last=Max("seq"), count=Count("pk")),
    }
