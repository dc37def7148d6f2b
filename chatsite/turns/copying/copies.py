"""Copies of conversations: a branch from any message, and the turns of copied rows.

Rows may be copied or imported.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic, sleep

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _

from chatsite import plugins
from chatsite.protocol.errors import CommandError
from memory import bundle, library, transcript
from memory.compaction import lease
from memory.models import Change, Conversation, Message, ModelCall, Summary

from .. import limits
from ..models import Turn

State = Turn.State
Source = Conversation.TitleSource
NO_REPLY = "no_reply"
# How long a copy may take that is written in batches.
PATIENCE = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class TurnInfo:
    """The data of a copied message's turn, besides its messages."""

    state: str = State.DONE
    model: str = ""
    error: str = ""
    reply_seq: int = 0
    started_at: datetime | None = None
    finished_at: datetime | None = None


@transaction.atomic
def branch_conversation(conversation: Conversation, seq: int) -> Conversation:
    """Return a new conversation that goes on as if message `seq` were the last.

    Raises CommandError when there is no such message, or too many were made lately.
    """
    made, end = _make_branch(conversation, seq)
    _copy_rows(conversation, made, end, bundle.at_once)
    return made


def branch_in_batches(
    conversation: Conversation,
    seq: int,
    finish: Callable[[Conversation], None] | None = None,
    *,
    is_same: bool = False,
) -> Conversation:
    """Branch outside of a transaction, some rows at a time; others write between.

    No list shows the branch before it is whole, with what `finish` adds last; one that
    stays in parts is purged. `is_same`: it is shown as the same conversation, and has
    only what is before message `seq`, which it says in another way.
    """
    with transaction.atomic():
        make = _make_alternative if is_same else _make_branch
        made, end = make(conversation, seq)
        rows = Conversation.objects.filter(pk=made.pk)
        # As a temporary one that was deleted: no list offers to bring it back.
        rows.update(deleted_at=Now(), temporary_until=Now() + PATIENCE)
    _copy_rows(conversation, made, end, _short_transaction)
    until = conversation.temporary_until
    with transaction.atomic():
        if finish:
            finish(made)
        if not rows.update(deleted_at=None, temporary_until=until):
            gone = _("This conversation no longer exists.")
            raise CommandError("not_found", gone)
    made.refresh_from_db()
    return made


@contextmanager
def _short_transaction(count: int) -> Iterator[None]:
    begun = monotonic()
    with transaction.atomic():
        yield
    # For as long as the batch had the database, the others have it.
    sleep(min(library.MAX_PAUSE, monotonic() - begun))


@dataclass(frozen=True, slots=True)
class CopyEnd:
    """The last message that is copied, and when it was superseded."""

    seq: int
    superseded_at: datetime | None = None


def _make_branch(conversation: Conversation, seq: int) -> tuple[Conversation, CopyEnd]:
    """Return the branch, with no message yet, and the last one that it will have."""
    message = conversation.messages.filter(seq=seq, deleted_at=None).first()
    if message is None:
        missing = _("There is no message #%(seq)s.") % {"seq": seq}
        raise CommandError("not_found", missing)
    title = conversation.title or _("New conversation")
    title = (_("%(title)s (branch)") % {"title": title})[:200]
    made = _make_copy(conversation, seq, title, branched_seq=seq)
    return made, CopyEnd(seq, message.superseded_at)


def _make_alternative(
    conversation: Conversation, seq: int
) -> tuple[Conversation, CopyEnd]:
    names = ("pinned_at", "archived_at", "answers_late")
    same = {name: getattr(conversation, name) for name in names}
    return _make_copy(conversation, seq, conversation.title, **same), CopyEnd(seq - 1)


def _make_copy(
    conversation: Conversation, seq: int, title: str, **values: object
) -> Conversation:
    """Store a copy without messages, and record that its owner has branched there."""
    by_user = conversation.title_set_by == Source.USER
    copied = Source.COPY if title else Source.NONE
    made = transcript.create_conversation(
        conversation.owner,
        title=title,
        title_set_by=Source.USER if by_user else copied,
        policy=conversation.policy,
        model=conversation.model,
        temperature=conversation.temperature,
        system_prompt=conversation.system_prompt,
        tools=conversation.tools,
        temporary=conversation.is_temporary,
    )
    made.title_seqs = transcript.list_title_seqs(conversation)
    made.branched_from = conversation
    for name in ("token_ratio", "token_overhead", "token_sums"):
        values[name] = getattr(conversation, name)
    for name, value in values.items():
        setattr(made, name, value)
    made.save()
    conversation.changes.create(action=Change.Action.BRANCH, seq=seq)
    limits.admit_conversation(conversation.owner_id)
    return made


def _copy_rows(
    conversation: Conversation, made: Conversation, end: CopyEnd, batch: bundle.Batch
) -> None:
    messages = bundle.write_bundle(made, _read_as_it_was(conversation, end), batch)
    rows = conversation.turns.filter(user_message__seq__lte=end.seq).order_by("pk")
    values = rows.values("user_message__seq", *TurnInfo.__slots__)
    infos = {row.pop("user_message__seq"): TurnInfo(**row) for row in values}
    write_turns(made, messages, infos, batch)
    for data in plugins.app_data:
        if data.copy:
            data.copy(conversation=conversation, branch=made, messages=messages)
    lease.mark_due(made.pk)


def _read_as_it_was(conversation: Conversation, end: CopyEnd) -> bundle.Bundle:
    """Return the rows up to a message, as they were before it was superseded."""
    rows = bundle.read_bundle(conversation, end.seq)
    since = end.superseded_at
    if since is None:
        return rows
    revived = []
    for row in rows.messages:
        if row["superseded_at"] and row["superseded_at"] >= since:
            row["superseded_at"] = None
            revived.append(row["seq"])
    for row in rows.summaries:
        # Such a version may cover messages that were hidden when it was written.
        if row["last_seq"] >= revived[0] and row["status"] == Summary.Status.ACTIVE:
            row["status"] = Summary.Status.STALE
    return rows


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
    for user, following in _split_exchanges(messages.values(), infos):
        info = infos.get(user.seq, TurnInfo())
        replies = [
            row
            for row in following
            if row.role == Message.Role.ASSISTANT
            and not row.tool_calls
            # One that is deleted may have asked for calls.
            and (not row.deleted_at or info.reply_seq in (0, row.seq))
        ]
        in_force = [row for row in replies if not row.superseded_at]
        reply = (in_force or replies or [None])[-1]
        # The reply in force, or the last one if the message itself was superseded.
        if reply and reply.superseded_at and not user.superseded_at:
            reply = None
        call = calls.get(reply.pk) if reply else None
        ended_at = info.finished_at or (reply or user).created_at or timezone.now()
        state, error = _end_turn(reply, info)
        turns.append(
            Turn(
                conversation=conversation,
                user_message=user,
                reply=reply,
                call=call,
                model=info.model or (call.model if call else ""),
                state=state,
                error=error,
                text=reply.text if reply else "",
                reply_seq=reply.seq if reply else info.reply_seq or user.seq + 1,
                started_at=info.started_at,
                finished_at=ended_at,
            )
        )
    for some in bundle.batches(turns, lambda turn: len(turn.text)):
        with batch(0):
            Turn.objects.bulk_create(some)


def _split_exchanges(
    rows: Iterable[Message], starts: Container[int]
) -> Iterator[tuple[Message, list[Message]]]:
    """Yield each message that begins a turn, and the messages after it.

    These are every user message, and those among `starts`, which had a turn of their
    own. Messages before the first one are left out.
    """
    user, following = None, []
    for row in rows:
        if row.role == Message.Role.USER or row.seq in starts:
            if user:
                yield user, following
            # A client can send a reply to nothing: it is all of its turn.
            user, following = row, [row] if row.role == Message.Role.ASSISTANT else []
        else:
            following.append(row)
    if user:
        yield user, following


def _end_turn(reply: Message | None, info: TurnInfo) -> tuple[str, str]:
    """Return state and error: no copied turn is unfinished, or done without a reply."""
    ended = info.state not in Turn.UNFINISHED
    if reply is None and (info.state == State.DONE or not ended):
        return State.STOPPED, NO_REPLY
    return (info.state if ended else State.DONE), info.error
