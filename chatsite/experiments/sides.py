"""The two views of a turn, or of the end, side by side: what is in summaries and what
in the window, with the texts for staff who may read them.
"""

from collections.abc import Iterable
from typing import Any

from django.db.models import QuerySet

from chatsite.review.rights import Rights
from memory import context
from memory.models import Message, ModelCall
from memory.ranges import within

from . import real
from .models import Experiment
from .steps import Steps, Turn, cutoff

# Longer windows are shown by their newest messages.
MAX_SHOWN = 40

# What one memory would have sent, see _view; None where no request is known.
View = dict[str, Any] | None


def at_end(experiment: Experiment, steps: Steps, rights: Rights) -> dict[str, View]:
    conversation = experiment.conversation
    active = conversation.summaries.filter(
        version__in=experiment.result["real"]["versions"]
    )
    active = active.order_by("first_seq")
    mine = steps.versions_at(len(steps.turns))
    rows = context.visible(conversation).filter(seq__lte=experiment.last_seq)
    is_done = experiment.state == Experiment.State.DONE or not steps.turns
    played = experiment.last_seq if is_done else steps.turns[-1].seq
    window = rows.filter(seq__gt=cutoff(mine), seq__lte=played)
    return {
        "experiment": _view(mine, window, rights),
        "real": _view(active, rows.filter(seq__gt=cutoff(active)), rights),
    }


def at_turn(
    experiment: Experiment, steps: Steps, number: int, rights: Rights
) -> dict[str, View]:
    """`number` counts from 1: the summaries made before it were sent with it."""
    turn = steps.turns[number - 1]
    versions = steps.versions_at(number - 1)
    rows = context.visible(experiment.conversation)
    rows = rows.filter(seq__gt=cutoff(versions), seq__lte=turn.seq)
    values = {"recalled": turn.recalled, "tokens": turn.tokens}
    return {
        "experiment": _view(versions, rows, rights, **values),
        "real": _real_at(experiment, turn.seq, rights),
    }


def _real_at(experiment: Experiment, seq: int, rights: Rights) -> View:
    """From the references of the request that was sent for this message."""
    turns = [Turn(*each) for each in experiment.result["real"]["turns"]]
    known = next((turn for turn in turns if turn.seq == seq), None)
    call = ModelCall.objects.filter(pk=known.call).first() if known else None
    if call is None or not real.is_whole(call.refs):
        return None
    refs, conversation = call.refs, experiment.conversation
    found = conversation.summaries.filter(version__in=refs["summaries"])
    said = [*refs["window"], *refs.get("steps", ())]
    sent = [*said, [refs["newest"], refs["newest"]]]
    pinned = conversation.messages.filter(within(refs["pinned"]))
    return _view(
        found.order_by("first_seq"),
        conversation.messages.filter(within(sent)).order_by("seq"),
        rights,
        pinned=list(pinned.order_by("seq").values_list("seq", flat=True)),
        recalled=refs["recalled"],
        tokens=known.tokens,
    )


def _view(
    versions: Iterable[Any], rows: QuerySet[Message], rights: Rights, **values: Any
) -> dict[str, Any]:
    """The texts of a window are not even read for staff who may not see them."""
    seqs = list(rows.values_list("seq", flat=True))
    newest = seqs[-MAX_SHOWN:] if rights.content else ()
    messages = list(rows.filter(seq__in=newest)) if newest else []
    return {
        "blocks": [(each, rights.shown(each.text)) for each in versions],
        "first": seqs[0] if seqs else None,
        "last": seqs[-1] if seqs else None,
        "count": len(seqs),
        # Of the window, the newest, and how many are not among them.
        "messages": messages,
        "left_out": len(seqs) - len(messages),
        "tokens": None,
        **values,
    }
