"""The location of a message: where the model sees it, for the tag on it."""

from dataclasses import dataclass

from django.db.models import Q
from django.utils.translation import gettext as _

from chatsite.turns.models import Turn
from memory.models import Conversation, Message, Summary


@dataclass(frozen=True, slots=True)
class Location:
    """The location of a message: the words on its tag and how it is drawn."""

    # window, summary, left, excluded, superseded, deleted, sending, queued
    kind: str
    text: str
    version: int | None = None


def states_of(conversation: Conversation, seqs: list[int]) -> dict[int, str]:
    """Return the states of the messages' turns, by the messages' numbers."""
    rows = conversation.turns.filter(
        Q(user_message__seq__in=seqs) | Q(reply_seq__in=seqs)
    ).values_list("user_message__seq", "reply_seq", "state")
    return {seq: state for user, reply, state in rows for seq in (user, reply)}


def location_of(row: Message, state: str | None, summaries: list[Summary]) -> Location:
    """Return the location of a message of a turn in this state."""
    if row.deleted_at:
        return Location("deleted", _("deleted"))
    if row.superseded_at:
        return Location("superseded", _("replaced"))
    if row.excluded_at:
        return Location("excluded", _("hidden from the model"))
    if state == Turn.State.QUEUED:
        return Location("queued", _("queued"))
    if state in (Turn.State.RUNNING, Turn.State.WAITING):
        return Location("sending", _("sending"))
    return find_behind(row.seq, summaries) or Location("window", _("in full"))


def find_behind(seq: int, summaries: list[Summary]) -> Location | None:
    """Return the location of a message that one of these versions covers."""
    for summary in summaries:
        if summary.first_seq <= seq <= summary.last_seq:
            if summary.is_trimmed:
                return Location("left", _("left the window"))
            text = _("summarised (v%(version)s)") % {"version": summary.version}
            return Location("summary", text, summary.version)
    return None
