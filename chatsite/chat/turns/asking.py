"""What a person does with turns: submit, stop, retry, edit; and what they then see."""

from dataclasses import dataclass

from django.db import models, transaction
from django.db.models.functions import Coalesce, Now
from django.utils.translation import gettext as _

from memory import transcript
from memory.models import Conversation, Message

from .. import outgoing
from ..errors import CommandError
from ..models import Turn
from .ending import end

State = Turn.State


@dataclass(frozen=True, slots=True)
class Submitted:
    turn: Turn
    message: Message
    position: int  # unfinished turns before this one
    created: bool  # False: this client_id was seen before
    title: str = ""  # set when this message gave the conversation its title


@transaction.atomic
def submit(conversation: Conversation, *, text: object, client_id: object) -> Submitted:
    """Store a message and queue its turn; running turns never make it wait or fail.

    Raises transcript.TextError when the text or the id can not be stored, CommandError
    when the model could never take the text.
    """
    message, created = transcript.append_user_message(
        conversation, text=text, client_id=client_id
    )
    if not created:
        turn = message.turns.get()
        return Submitted(turn, message, position(turn), created=False)
    outgoing.check_fits(conversation, message)
    turn = Turn.objects.create(
        conversation=conversation, user_message=message, reply_seq=message.seq + 1
    )
    title = transcript.suggest_title(conversation, message.text)
    return Submitted(turn, message, position(turn), created=True, title=title)


def position(turn: Turn) -> int:
    if turn.is_finished:
        return 0
    return unfinished(turn.conversation_id).filter(pk__lt=turn.pk).count()


def unfinished(conversation_id: int) -> models.QuerySet[Turn]:
    rows = Turn.objects.filter(
        conversation_id=conversation_id, state__in=Turn.UNFINISHED
    )
    return rows.order_by("pk")


def open_from(conversation: Conversation) -> int | None:
    """The number of the first message whose turn is not finished."""
    seqs = unfinished(conversation.pk).values_list("user_message__seq", flat=True)
    return seqs.first()


def get(conversation: Conversation, turn_id: int) -> Turn:
    turn = conversation.turns.filter(pk=turn_id).first()
    if turn is None:
        raise CommandError(
            "not_found", _("There is no such turn in this conversation.")
        )
    return turn


@transaction.atomic
def stop(conversation: Conversation, turn_id: int) -> Turn:
    """End a queued turn at once; ask a running one to end. A finished one stays."""
    transcript.lock(conversation)
    turn = get(conversation, turn_id)
    if turn.state == State.QUEUED:
        queued = Turn.objects.filter(pk=turn.pk, state=State.QUEUED)
        end(queued, turn, State.STOPPED)
    elif turn.state == State.RUNNING:
        running = Turn.objects.filter(pk=turn.pk, state=State.RUNNING)
        running.update(cancel_requested_at=Coalesce("cancel_requested_at", Now()))
    return Turn.objects.select_related("reply").get(pk=turn.pk)


@transaction.atomic
def retry(conversation: Conversation, turn_id: int) -> Turn:
    """Queue the latest turn again. What it had said stays, marked as superseded."""
    transcript.lock(conversation)
    turn = get(conversation, turn_id)
    if turn.state not in Turn.RETRYABLE:
        raise CommandError(
            "not_retryable", _("Only a reply that did not end well can be retried.")
        )
    if conversation.turns.filter(pk__gt=turn.pk).exists():
        raise CommandError(
            "not_latest",
            _("Only the latest reply can be retried; send the message again instead."),
        )
    check_answerable(turn)
    if turn.reply:
        transcript.supersede(conversation, turn.reply.seq, turn.reply.seq)
    return requeue(conversation, turn)


def check_answerable(turn: Turn) -> None:
    message = turn.user_message
    if message.superseded_at or message.deleted_at:
        raise CommandError("not_found", _("The message it would answer is gone."))


def requeue(conversation: Conversation, turn: Turn) -> Turn:
    """Queue a turn again, under a new number for its reply."""
    turn.reply_seq = transcript.reserve(conversation, 1)
    turn.state, turn.text, turn.error = State.QUEUED, "", ""
    turn.attempts_before = turn.text_attempt = turn.attempt
    turn.reply = turn.call = turn.cancel_requested_at = turn.finished_at = None
    turn.save()
    return turn


@transaction.atomic
def edit(
    conversation: Conversation, *, seq: int, text: object, client_id: object
) -> Submitted:
    """Send message `seq` again in other words; it and all after it are superseded."""
    transcript.lock(conversation)
    transcript.check_text(text)
    transcript.check_client_id(client_id)
    if conversation.messages.filter(client_id=client_id).exists():
        return submit(conversation, text=text, client_id=client_id)
    message = conversation.messages.filter(
        seq=seq, role=Message.Role.USER, superseded_at=None
    ).first()
    if message is None:
        raise _not_editable(conversation, seq)
    if unfinished(conversation.pk).exists():
        raise CommandError(
            "busy", _("A reply is still being written. Stop it first, then edit.")
        )
    transcript.supersede(conversation, seq)
    return submit(conversation, text=text, client_id=client_id)


def _not_editable(conversation: Conversation, seq: int) -> CommandError:
    """Why message `seq` can not be edited: mostly because another tab was faster."""
    rows = conversation.messages.filter(role=Message.Role.USER)
    newer = rows.filter(seq__gt=seq, superseded_at=None).order_by("seq").first()
    if newer and rows.filter(seq=seq).exists():
        text = _(
            "Message #%(old)s was edited elsewhere meanwhile and is #%(new)s now. Your "
            "text is still here: send it again to put it in the place of #%(new)s."
        )
        values = {"old": seq, "new": newer.seq}
        return CommandError("superseded", text % values, seq=newer.seq)
    return CommandError("not_found", _("There is no such message of yours to edit."))
