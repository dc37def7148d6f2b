"""Conversations made of others: a branch from any message, and the turns of rows that
were copied or imported.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from chatsite.protocol.errors import CommandError
from chatsite.turns import limits
from chatsite.turns.models import Turn
from memory import bundle, transcript
from memory.compaction import compactor
from memory.models import Conversation, Message, ModelCall, Summary

State = Turn.State
Source = Conversation.TitleSource
NO_REPLY = "no_reply"


@dataclass(frozen=True, slots=True)
class TurnInfo:
    """What is known of the turn of a copied message beside its messages."""

    state: str = State.DONE
    model: str = ""
    error: str = ""
    reply_seq: int = 0
    started_at: datetime | None = None
    finished_at: datetime | None = None


@transaction.atomic
def branch(conversation: Conversation, seq: int) -> Conversation:
    """A new conversation that goes on after message `seq` as if nothing came then.

    Raises CommandError when there is no such message, or too many were made lately.
    """
    message = conversation.messages.filter(seq=seq, deleted_at=None).first()
    if message is None:
        missing = _("There is no message #%(seq)s.") % {"seq": seq}
        raise CommandError("not_found", missing)
    title = conversation.title or _("New conversation")
    made = transcript.create(
        conversation.owner,
        title=(_("%(title)s (branch)") % {"title": title})[:200],
        title_set_by=Source.USER
        if conversation.title_set_by == Source.USER
        else Source.COPY,
        policy=conversation.policy,
        model=conversation.model,
        system_prompt=conversation.system_prompt,
    )
    made.branched_from, made.branched_seq = conversation, seq
    made.token_ratio = conversation.token_ratio
    made.token_overhead = conversation.token_overhead
    made.token_sums = conversation.token_sums
    made.save()
    messages = bundle.write(made, _as_it_was(conversation, message))
    write_turns(made, messages, _infos(conversation, seq))
    compactor.mark_due(made.pk)
    limits.admit_conversation(conversation.owner_id)
    return made


def _as_it_was(conversation: Conversation, last: Message) -> bundle.Bundle:
    """The rows up to a message; what was superseded together with it is not yet."""
    rows = bundle.read(conversation, last.seq)
    since = last.superseded_at
    if since is None:
        return rows
    revived = [
        row["seq"]
        for row in rows.messages
        if row["superseded_at"] and row["superseded_at"] >= since
    ]
    for row in rows.messages:
        if row["seq"] in set(revived):
            row["superseded_at"] = None
    for row in rows.summaries:
        # Such a version may stand for messages that were hidden when it was written.
        if row["last_seq"] >= revived[0] and row["status"] == Summary.Status.ACTIVE:
            row["status"] = Summary.Status.STALE
    return rows


def _infos(conversation: Conversation, last: int) -> dict[int, TurnInfo]:
    names = [*TurnInfo.__slots__]
    rows = conversation.turns.filter(user_message__seq__lte=last).order_by("pk")
    values = rows.values_list("user_message__seq", *names)
    return {
        seq: TurnInfo(**dict(zip(names, rest, strict=True))) for seq, *rest in values
    }


def write_turns(
    conversation: Conversation,
    messages: Mapping[int, Message],
    infos: Mapping[int, TurnInfo],
    batch: bundle.Batch = bundle.at_once,
) -> None:
    """Give every user message its turn."""
    calls = {
        call.message_id: call
        for call in conversation.model_calls.filter(
            purpose=ModelCall.Purpose.REPLY, message__isnull=False
        ).order_by("pk")
    }
    turns = []
    for user, following in _exchanges(messages.values()):
        info = infos.get(user.seq, TurnInfo())
        reply = _reply_of(user, following)
        values = _values(user, reply, info)
        call = calls.get(reply.pk) if reply else None
        turns.append(
            Turn(
                conversation=conversation,
                user_message=user,
                reply=reply,
                call=call,
                model=info.model or (call.model if call else ""),
                **values,
            )
        )
    for some in bundle.batches(turns, lambda turn: len(turn.text)):
        with batch(0):
            Turn.objects.bulk_create(some)


def _exchanges(rows: Iterable[Message]) -> Iterator[tuple[Message, list[Message]]]:
    """Each user message with what follows it; what stands before the first has none."""
    user, following = None, []
    for row in rows:
        if row.role == Message.Role.USER:
            if user:
                yield user, following
            user, following = row, []
        else:
            following.append(row)
    if user:
        yield user, following


def _reply_of(user: Message, following: list[Message]) -> Message | None:
    """The reply in force, or the last one when the message itself was superseded."""
    replies = [row for row in following if row.role == Message.Role.ASSISTANT]
    if not replies or (replies[-1].superseded_at and not user.superseded_at):
        return None
    return replies[-1]


def _values(user: Message, reply: Message | None, info: TurnInfo) -> dict[str, Any]:
    ended = info.state not in Turn.UNFINISHED
    state, error = info.state if ended else State.STOPPED, info.error
    if reply is None and (state == State.DONE or not ended):
        state, error = State.STOPPED, NO_REPLY
    if reply and not ended:
        state = State.DONE
    finished_at = info.finished_at or (reply or user).created_at or timezone.now()
    return {
        "state": state,
        "error": error,
        "text": reply.text if reply else "",
        "reply_seq": reply.seq if reply else info.reply_seq or user.seq + 1,
        "started_at": info.started_at,
        "finished_at": finished_at,
    }
