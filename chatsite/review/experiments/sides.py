"""The two views of a turn, or of the end, side by side: what stands in summaries, what
in the window, with the words for those who may read them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from memory import context
from memory.models import Message, ModelCall
from memory.ranges import Ranges, within

from ..models import Experiment
from ..rights import Rights
from . import real
from .steps import Steps, Turn, cutoff

# Longer windows are shown by their newest messages.
MAX_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Block:
    """A summary as it is shown."""

    version: int
    first_seq: int
    last_seq: int
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class SideView:
    """What one memory would have sent; `messages` are of the window, the newest."""

    blocks: Sequence[Block]
    first: int | None
    last: int | None
    count: int
    messages: Sequence[Message]
    pinned: Sequence[int] = ()
    recalled: Sequence[int] = ()
    tokens: int | None = None

    @property
    def left_out(self) -> int:
        """Of the window, what is not shown here."""
        return self.count - len(self.messages)


@dataclass(frozen=True, slots=True)
class Pair:
    """Both sides; real is None where no request of that turn is known."""

    experiment: SideView
    real: SideView | None


def at_end(experiment: Experiment, steps: Steps, rights: Rights) -> Pair:
    conversation = experiment.conversation
    turns = len(steps.turns)
    active = conversation.summaries.filter(
        version__in=experiment.result["real"]["versions"]
    )
    blocks = [_block(row, rights) for row in active.order_by("first_seq")]
    end = max((block.last_seq for block in blocks), default=0)
    rows = context.visible(conversation).filter(seq__lte=experiment.last_seq)
    played = _reached(steps, experiment)
    mine = [_block(each, rights) for each in steps.versions_at(turns)]
    return Pair(
        experiment=_view(
            mine,
            rows.filter(seq__gt=cutoff(steps.versions_at(turns)), seq__lte=played),
            rights,
        ),
        real=_view(blocks, rows.filter(seq__gt=end), rights),
    )


def _reached(steps: Steps, experiment: Experiment) -> int:
    """The number of the last message that was played."""
    done = experiment.state == Experiment.State.DONE or not steps.turns
    return experiment.last_seq if done else steps.turns[-1].seq


def at_turn(experiment: Experiment, steps: Steps, number: int, rights: Rights) -> Pair:
    """`number` counts from 1: the summaries made before it were sent with it."""
    turn = steps.turns[number - 1]
    versions = steps.versions_at(number - 1)
    conversation = experiment.conversation
    rows = context.visible(conversation).filter(
        seq__gt=cutoff(versions), seq__lte=turn.seq
    )
    return Pair(
        experiment=_view(
            [_block(each, rights) for each in versions],
            rows,
            rights,
            recalled=turn.recalled,
            tokens=turn.tokens,
        ),
        real=_real_at(experiment, turn.seq, rights),
    )


def _real_at(experiment: Experiment, seq: int, rights: Rights) -> SideView | None:
    """From the references of the request that was sent for this message."""
    turns = [Turn(*each) for each in experiment.result["real"]["turns"]]
    known = next((turn for turn in turns if turn.seq == seq), None)
    call = ModelCall.objects.filter(pk=known.call).first() if known else None
    if call is None or not real.is_whole(call.refs):
        return None
    refs = call.refs
    conversation = experiment.conversation
    found = conversation.summaries.filter(version__in=refs["summaries"])
    sent = [*refs["window"], [refs["newest"], refs["newest"]]]
    return _view(
        [_block(row, rights) for row in found.order_by("first_seq")],
        conversation.messages.filter(within(sent)).order_by("seq"),
        rights,
        pinned=_seqs(refs["pinned"]),
        recalled=refs["recalled"],
        tokens=known.tokens,
    )


def _seqs(ranges: Ranges) -> list[int]:
    return [seq for first, last in ranges for seq in range(first, last + 1)]


def _block(row: Any, rights: Rights) -> Block:
    return Block(
        row.version, row.first_seq, row.last_seq, row.level, rights.words(row.text)
    )


def _view(
    blocks: Sequence[Block],
    rows: QuerySet[Message],
    rights: Rights,
    **values: Any,
) -> SideView:
    """The texts of a window are not read at all for those who may not see them."""
    seqs = list(rows.values_list("seq", flat=True))
    newest = seqs[-MAX_SHOWN:] if rights.content else ()
    return SideView(
        blocks=blocks,
        first=seqs[0] if seqs else None,
        last=seqs[-1] if seqs else None,
        count=len(seqs),
        messages=list(rows.filter(seq__in=newest)) if newest else (),
        **values,
    )
