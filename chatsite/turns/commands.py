"""The commands of users on turns: send, edit, stop, retry, regenerate.

Each is one transaction, and running turns never make it wait.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any

from asgiref.sync import async_to_sync
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Coalesce, Now
from django.utils.translation import gettext as _

from chatsite import plugins
from chatsite.features.attachments import uploads
from chatsite.features.tools.tool_loop import answers, steps
from chatsite.features.tree import listing
from chatsite.protocol import events
from chatsite.protocol.errors import CommandError
from memory import actions, transcript
from memory.actions import EditChoice
from memory.engine.attachments import Attachment
from memory.leases import new_owner
from memory.models import Change, Conversation, Message
from memory.rules import rule_source
from memory.sql import insert_row

from . import limits, model_access, requests
from .lifecycle import State, TurnClaim, end, position, unfinished
from .models import TURN_LEASE, Turn

# Longer texts are read only for those who may send now.
LONG_CHARS = 2_000
# Why a turn was cancelled.
MESSAGE_DELETED, STEP_REMOVED = "message_deleted", "step_removed"


@dataclass(frozen=True, slots=True)
class Submission:
    turn: Turn
    message: Message
    position: int  # unfinished turns before this one
    created: bool  # False: this client_id was seen before
    title: str = ""  # set when this message gave the conversation its title
    claim: TurnClaim | None = None  # where this process is to run it at once


def detect_message_rules(owner_id: int, text: object) -> Any:
    """Return the rules in a text that is about to be sent.

    Call it before the transaction, in which others wait: a long text is read only if
    its owner may send now. Raises TextError and CommandError, as what stores the text
    does.
    """
    text = transcript.check_message_text(text, may_be_blank=True)
    if len(text) > LONG_CHARS:
        limits.check_turn(owner_id)
    return rule_source.find_source("rules").detect_rules(text)


def detect_unless_known(
    conversation: Conversation, *, text: object, client_id: object
) -> Any:
    """Return the rules in a text, unless this long message came in before.

    An acknowledged message needs no permission to be sent, and is not read again.
    """
    is_long = isinstance(text, str) and len(text) > LONG_CHARS
    if is_long and is_known(conversation, client_id):
        return None
    return detect_message_rules(conversation.owner_id, text)


@transaction.atomic
def submit_message(
    conversation: Conversation,
    *,
    text: object,
    client_id: object,
    attachments: object = (),
    kept: Message | None = None,
    rules: Any = None,
    is_limited: bool = False,
    run: bool = False,
) -> Submission:
    """Store a message and queue its turn; running turns never make it wait or fail.

    `attachments`: ids of the owner's files; `kept`: a message whose attachments it has
    instead; `rules`: the result of detect_message_rules(). `is_limited`: within the
    limits of its owner; then a turn with nothing in front of it is claimed at once, if
    it may `run` in this process.

    Raises transcript.TextError when the text, an id or a file cannot be stored,
    CommandError when the model could never take the text, or for a limit.
    """
    check_writable(conversation)
    room = answers.find_room(conversation)
    message, created = transcript.append_user_message(
        conversation,
        text=text,
        client_id=client_id,
        room=room,
        files=_find_files(conversation, attachments, kept),
        detected_rules=rules,
    )
    if not created:
        turn = message.turns.get()
        return Submission(turn, message, position(turn), created=False)
    model_access.check_model(conversation.owner_id, requests.model_of(conversation))
    requests.check_fits(conversation, message)
    claim, before = None, None
    if is_limited:
        open_turns = limits.admit_turn(conversation.owner_id, stored=False)
        before = [each.conversation_id for each in open_turns].count(conversation.pk)
        if run and not before and limits.has_place(open_turns):
            claim = _insert_claimed(message)
    turn = claim.turn if claim else _queue_turn(message, room=room)
    before = position(turn) if before is None else before
    title = _suggest_title(message)
    listing.note_use(conversation)
    return Submission(turn, message, before, created=True, title=title, claim=claim)


def check_writable(conversation: Conversation) -> None:
    """Raise CommandError for a conversation that is written elsewhere."""
    if refusal := plugins.find_write_refusal(conversation):
        raise CommandError("read_only", refusal)


def send_message(
    conversation: Conversation,
    *,
    text: object,
    client_id: object,
    attachments: object = (),
    run: bool = True,
) -> Submission:
    """submit_message() within the limits of its owner."""
    rules = detect_unless_known(conversation, text=text, client_id=client_id)
    values = {"text": text, "client_id": client_id, "attachments": attachments}
    return submit_message(conversation, **values, rules=rules, is_limited=True, run=run)


def is_known(conversation: Conversation, client_id: object) -> bool:
    """Return whether this message came in before, in which case no limit applies."""
    transcript.check_client_id(client_id)
    return conversation.messages.filter(client_id=client_id).exists()


def _find_files(
    conversation: Conversation, attachments: object, kept: Message | None
) -> transcript.MessageFiles:
    """Return the files to attach: uploads of the owner, or those of a message."""
    room = requests.room_for_files(conversation)

    def keep(message: Message, taken: Sequence[Attachment]) -> None:
        uploads.keep_files(message, taken, kept)

    if kept:
        files = kept.files
        ids = [each.id for each in files]
        return transcript.MessageFiles(ids, lambda _: files, room, keep)
    take = partial(uploads.take_files, conversation.owner_id)
    return transcript.MessageFiles(
        uploads.read_upload_ids(attachments), take, room, keep
    )


def _queue_turn(message: Message, **values: Any) -> Turn:
    place = {"user_message": message, "reply_seq": message.seq + 1}
    return insert_row(Turn(conversation=message.conversation, **place, **values))


def _insert_claimed(message: Message) -> TurnClaim:
    owner, started = new_owner(), monotonic()
    turn = _queue_turn(
        message,
        state=State.RUNNING,
        attempt=1,
        owner=owner,
        lease_until=TURN_LEASE.new_expiry(),
        started_at=Now(),
    )
    ids = (turn.pk, owner, turn.conversation_id)
    return TurnClaim(*ids, turn.attempt, renewed_at=started, turn=turn)


def _suggest_title(message: Message) -> str:
    if message.conversation.title_set_by != Conversation.TitleSource.NONE:
        return ""
    words = transcript.words_for_title(message)
    return transcript.suggest_title(message.conversation, words, message.seq)


def get_turn(conversation: Conversation, turn_id: int) -> Turn:
    turn = conversation.turns.filter(pk=turn_id).first()
    if turn is None:
        raise CommandError(
            "not_found", _("There is no such turn in this conversation.")
        )
    return turn


@transaction.atomic
def stop_turn(conversation: Conversation, turn_id: int) -> Turn:
    """End a turn at once that no process runs; ask a running one to end.

    A finished one stays.
    """
    transcript.lock_for_update(conversation)
    turn = get_turn(conversation, turn_id)
    if turn.state in (State.QUEUED, State.WAITING):
        idle = Turn.objects.filter(pk=turn.pk, state=turn.state)
        is_new = end(idle, turn, State.STOPPED)
    else:
        running = Turn.objects.filter(pk=turn.pk, state=State.RUNNING)
        running = running.filter(cancel_requested_at=None)
        is_new = bool(running.update(cancel_requested_at=Now()))
    if is_new:
        conversation.changes.create(action=Change.Action.STOP, seq=turn.reply_seq)
    return turn.read_again()


@transaction.atomic
def retry_turn(conversation: Conversation, turn_id: int) -> Turn:
    """Queue the latest turn again; its reply so far stays, marked as superseded."""
    check_writable(conversation)
    transcript.lock_for_update(conversation)
    turn = get_turn(conversation, turn_id)
    if turn.state not in Turn.RETRYABLE:
        raise CommandError(
            "not_retryable", _("Only a reply that did not end well can be retried.")
        )
    not_latest = _(
        "Only the latest reply can be retried; send the message again instead."
    )
    return _answer_again(conversation, turn, not_latest)


@transaction.atomic
def edit_message(
    conversation: Conversation,
    *,
    seq: int,
    text: object,
    client_id: object,
    rules: Any = None,
) -> Submission:
    """Send message `seq` again in other words and with the same attachments.

    The message and all after it are superseded.
    """
    check_writable(conversation)
    transcript.lock_for_update(conversation)
    transcript.check_client_id(client_id)
    if known := conversation.messages.filter(client_id=client_id).first():
        return submit_message(conversation, text=text, client_id=client_id, kept=known)
    message = conversation.messages.filter(
        seq=seq, role=Message.Role.USER, superseded_at=None
    ).first()
    if message is None:
        raise explain_not_editable(conversation, seq)
    if unfinished(conversation.pk).exists():
        raise CommandError(
            "busy", _("The reply is still being written. Stop it first.")
        )
    transcript.check_message_text(text, may_be_blank=bool(message.attachments))
    transcript.supersede_messages(conversation, seq)
    conversation.changes.create(action=Change.Action.EDIT, seq=seq)
    given_up = steps.supersede_calls(conversation)
    sent = submit_message(
        conversation, text=text, client_id=client_id, kept=message, rules=rules
    )
    sent.turn.also_published = given_up
    return sent


def explain_not_editable(conversation: Conversation, seq: int) -> CommandError:
    """Explain why message `seq` cannot be edited: mostly another tab was faster."""
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


@transaction.atomic
def regenerate_reply(conversation: Conversation, turn_id: int) -> Turn:
    """Queue the latest turn for another reply; the one it has stays, superseded."""
    check_writable(conversation)
    transcript.lock_for_update(conversation)
    turn = get_turn(conversation, turn_id)
    if not turn.is_finished:
        raise CommandError(
            "busy", _("The reply is still being written. Stop it first.")
        )
    not_latest = _(
        "Only the latest reply can be regenerated. Branch to redo an older one."
    )
    return _answer_again(conversation, turn, not_latest)


def _answer_again(conversation: Conversation, turn: Turn, not_latest: str) -> Turn:
    """Queue the latest turn again, under a new number for its reply."""
    if conversation.turns.filter(pk__gt=turn.pk).exists():
        raise CommandError("not_latest", not_latest)
    model_access.check_model(conversation.owner_id, requests.model_of(conversation))
    message = turn.user_message
    if message.superseded_at or message.deleted_at:
        raise CommandError("not_found", _("The message it would answer is gone."))
    # With all that it has stored: calls of tools and their results, and the reply.
    if turn.reply or turn.may_have_rows:
        transcript.supersede_messages(conversation, message.seq + 1, turn.reply_seq)
        turn.also_published = steps.supersede_calls(conversation)
    # If no message took that number, this row is where it is known.
    conversation.changes.create(action=Change.Action.REGENERATE, seq=turn.reply_seq)
    turn.reply_seq = transcript.reserve_numbers(conversation, 1)
    turn.state, turn.text, turn.error = State.QUEUED, "", ""
    turn.attempts_before = turn.text_attempt = turn.attempt
    turn.reply = turn.call = turn.cancel_requested_at = turn.finished_at = None
    turn.save()
    return turn


def stop_each(conversations: Iterable[Conversation]) -> dict[int, list[int]]:
    """Stop the turns of each conversation; return the running ones by its key.

    All conversations without a turn to stop take one statement together.
    """
    known = {each.pk: each for each in conversations}
    open_turns = Turn.objects.filter(conversation__in=known, state__in=Turn.UNFINISHED)
    busy = set(open_turns.values_list("conversation", flat=True))
    return {pk: stop_all(each) if pk in busy else [] for pk, each in known.items()}


def stop_all(conversation: Conversation) -> list[int]:
    """End the queued turns and ask the running ones to end; return the latter."""
    # The queued ones first: the end of a running one starts the next.
    waiting = unfinished(conversation.pk).order_by("-pk")
    stopped = [
        stop_turn(conversation, pk) for pk in waiting.values_list("pk", flat=True)
    ]
    return [turn.pk for turn in stopped if turn.state == State.RUNNING]


@transaction.atomic
def end_unfinished_turns(conversation: Conversation) -> list[int]:
    """End every unfinished turn now; return the turns that were running.

    The process that runs one of them can write nothing more. Raises
    Conversation.DoesNotExist when the conversation is gone.
    """
    transcript.lock_for_update(conversation)
    open_turns = list(unfinished(conversation.pk).select_related("conversation"))
    # The last one first, so that each gives the number of its reply back.
    for turn in reversed(open_turns):
        row = Turn.objects.filter(pk=turn.pk, state__in=Turn.UNFINISHED)
        end(row, turn, State.STOPPED)
    return [turn.pk for turn in open_turns if turn.state == State.RUNNING]


@transaction.atomic
def hide_message(conversation: Conversation, seq: int, *, edited: EditChoice) -> None:
    """Hide message `seq` from the model.

    Raises what actions.exclude_messages() raises.
    """
    actions.exclude_messages(conversation, [seq], edited=edited)
    _cancel_unanswerable(conversation)


@transaction.atomic
def delete_message(conversation: Conversation, seq: int, *, edited: EditChoice) -> None:
    """Delete message `seq` permanently. Raises what actions.delete_message() raises."""
    before = conversation.title
    actions.delete_message(conversation, seq, edited=edited)
    _cancel_unanswerable(conversation)
    conversation.refresh_from_db(fields=["title", "title_set_by"])
    if conversation.title != before:
        _publish_later(conversation, [events.Title(conversation.title)])


def _publish_later(
    conversation: Conversation, published: Iterable[events.Event]
) -> None:
    # Those who receive an event read the row, which has to be there.
    for event in published:
        publish = partial(async_to_sync(events.publish_event), conversation.pk, event)
        transaction.on_commit(publish)


def _cancel_unanswerable(conversation: Conversation) -> None:
    """Cancel the turns whose message was deleted, or a tool call deleted or hidden.

    The model would only repeat such a call. A running turn ends as soon as its runner
    sees it, the others now. Clients are notified of each.
    """
    is_deleted = Q(user_message__deleted_at__isnull=False)
    found = unfinished(conversation.pk).filter(is_deleted | steps.is_call_removed())
    gone = list(found.select_related("conversation", "user_message"))
    for turn in reversed(gone):
        row = Turn.objects.filter(pk=turn.pk)
        error = MESSAGE_DELETED if turn.user_message.deleted_at else STEP_REMOVED
        idle = row.filter(state__in=(State.QUEUED, State.WAITING))
        if not end(idle, turn, State.STOPPED, error=error):
            row.filter(state=State.RUNNING).update(
                cancel_requested_at=Coalesce("cancel_requested_at", Now()), error=error
            )
            # What its tools still bring comes too late: nothing of it is stored.
            steps.close_steps(turn)
    for turn in [turn.read_again() for turn in gone]:
        if turn.is_finished:
            _publish_later(conversation, events.make_end_events(turn))
        else:
            _publish_later(conversation, turn.also_published)
            transaction.on_commit(partial(async_to_sync(events.hint_stop), turn.pk))
