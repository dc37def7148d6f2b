"""The left pane as it stood when one reply was asked for: what had been said, and where
the model saw it then, by the references of that request.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from memory.models import Conversation, Message, ModelCall, Summary

from .locations import Mark

PAGE = 100


@dataclass(frozen=True, slots=True)
class Then:
    """A message as it stood; the line under it is drawn where `ends` ended."""

    seq: int
    role: str
    text: str
    created_at: datetime
    mark: Mark
    pinned: bool = False
    ends: Summary | None = None


def messages_at(conversation: Conversation, call: ModelCall) -> list[Then]:
    """The latest messages before the reply of `call`, and the reply, oldest first."""
    reply = call.message.seq
    rows = conversation.messages.filter(seq__lte=reply).order_by("-seq")[:PAGE]
    summaries = conversation.summaries.filter(version__in=call.refs["summaries"])
    ordered = list(summaries.order_by("first_seq"))
    shown = [_then(row, call.refs, ordered, reply) for row in reversed(rows)]
    return list(_with_ends([each for each in shown if each], ordered))


def _then(
    row: Message, refs: dict[str, Any], summaries: list[Summary], reply: int
) -> Then | None:
    mark = _mark(row.seq, refs, summaries, reply)
    if mark is None and (row.superseded_at or row.deleted_at):
        return None  # gone before or after: the references do not tell
    return Then(
        seq=row.seq,
        role=row.role,
        text=row.text,
        created_at=row.created_at,
        mark=mark or Mark("excluded", _("not sent")),
        pinned=_is_in(row.seq, refs["pinned"]),
    )


def _mark(
    seq: int, refs: dict[str, Any], summaries: list[Summary], reply: int
) -> Mark | None:
    if seq == reply:
        return Mark("reply", _("the reply"))
    if seq == refs["newest"]:
        return Mark("sending", _("newest message"))
    if _is_in(seq, refs["window"]):
        return Mark("window", _("sent in full"))
    if seq in refs["recalled"]:
        return Mark("recalled", _("recalled"))
    for summary in summaries:
        if summary.first_seq <= seq <= summary.last_seq:
            text = _("summarised (v%(version)s)") % {"version": summary.version}
            return Mark("summary", text, summary.version)
    return None


def _is_in(seq: int, ranges: list[list[int]]) -> bool:
    return any(first <= seq <= last for first, last in ranges)


def _with_ends(shown: list[Then], summaries: list[Summary]) -> Iterator[Then]:
    for index, each in enumerate(shown):
        upcoming = shown[index + 1].seq if index + 1 < len(shown) else None
        ended = [
            summary
            for summary in summaries
            if each.seq <= summary.last_seq
            and (upcoming is None or summary.last_seq < upcoming)
        ]
        yield replace(each, ends=ended[-1]) if ended else each
