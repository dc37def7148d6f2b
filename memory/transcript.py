"""Every read and write of conversations and messages, and the access check."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.db.models import F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _

from . import versions
from .engine import attachments as attached
from .engine.attachments import Attachment
from .engine.blank import drop_fences, is_blank
from .engine.policy import Policy
from .engine.tokens import count_message
from .models import Change, Conversation, Message, ModelCall
from .rules import rule_source
from .search import recall
from .sql import Update, insert_row, prepared_rows, prepared_update
from .view import tool_groups

CLIENT_ID = re.compile(r"[\x21-\x7e]{1,64}")
TITLE_CHARS = 60
# How long a temporary conversation outlives its last open page.
TEMPORARY_MINUTES = 15
TEMPORARY = timedelta(minutes=TEMPORARY_MINUTES)
# The limit of a conversation's own system prompt, which every request contains.
SYSTEM_PROMPT_CHARS = 8_000
# The limit of a message with its attachments, for imports and recall too.
WHOLE_CHARS = 200_000
# URLs of messages have nine digits, and the database's integers end soon after. Imports
# have this limit too, so every conversation can be imported again.
LAST_SEQ = 999_999_999
# Automatic titles are made from the first turns.
TITLE_TURNS = 4


class ActionError(ValueError):
    """An action of a user that is impossible now; the message says why."""


class TextError(ValueError):
    """A text or an id that can't be stored; `code` says why, `detail` what to do."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class ClientIdConflictError(TextError):
    def __init__(self) -> None:
        super().__init__(
            "conflict",
            _("This client_id was already used for another text. Use a new one."),
        )


def get_for(user: AbstractBaseUser, uuid: UUID | str) -> Conversation:
    """Return the user's own conversation.

    Raises Conversation.DoesNotExist for a missing, a deleted and another user's alike.
    """
    return Conversation.objects.get(owner=user, uuid=uuid, deleted_at=None)


def create_conversation(
    owner: AbstractBaseUser,
    *,
    title: str = "",
    title_set_by: str = Conversation.TitleSource.USER,
    preset: str = "",
    policy: dict[str, object] | None = None,
    tools: Sequence[str] = (),
    own_rules: Iterable[str] = (),
    temporary: bool = False,
    **columns: Any,
) -> Conversation:
    """Create a conversation.

    `own_rules`: texts of its owner's list of rules. `columns`: others of Conversation.
    A `temporary` one has a name from the start, so none is made from its messages.
    Raises PolicyError when the policy or preset is wrong.
    """
    if temporary:
        title = title or _("Temporary conversation")
        title_set_by = Conversation.TitleSource.USER
    value = {**({"preset": preset} if preset else {}), **(policy or {})}
    Policy.load(value)
    source = title_set_by if title else Conversation.TitleSource.NONE
    made = Conversation.objects.create(
        owner=owner,
        title=title,
        title_set_by=source,
        policy=value,
        tools=list(tools),
        temporary_until=timezone.now() + TEMPORARY if temporary else None,
        **columns,
    )
    rule_source.find_source("rules").add_own_rules(made, own_rules)
    return made


def find_begun(
    owner: AbstractBaseUser, text: str, client_id: str, files: Sequence[str] = ()
) -> Conversation | None:
    """Return the owner's conversation that began with this message, if any.

    The message must have been sent before with the attachments of these ids.
    """
    rows = Message.objects.filter(
        conversation__owner=owner, conversation__deleted_at=None, client_id=client_id
    ).select_related("conversation")
    found = (row.conversation for row in rows if _is_same(row, text, files))
    return next(found, None)


def change_tools(
    conversation: Conversation, names: Sequence[str], *, answers_late: bool = False
) -> None:
    """Let the model call the tools of these names only, from the next turn on.

    `answers_late`: a late result starts a turn of its own at once.
    """
    rows = Conversation.objects.filter(pk=conversation.pk)
    values = {"tools": list(names), "answers_late": answers_late}
    rows.update(**values, updated_at=Now())
    conversation.refresh_from_db(fields=[*values, "updated_at"])


def rename_conversation(
    conversation: Conversation, title: str, *, seen: str | None = None
) -> bool:
    """Set the title that a user chose; nothing automatic replaces it.

    With `seen`, a title that the user has set elsewhere since then stays; then return
    False.
    """
    rows = Conversation.objects.filter(pk=conversation.pk)
    if seen is not None:
        by_user = Q(title_set_by=Conversation.TitleSource.USER)
        rows = rows.filter(~by_user | Q(title__in=(seen, title)))
    done = rows.update(
        title=title, title_set_by=Conversation.TitleSource.USER, updated_at=Now()
    )
    conversation.refresh_from_db(fields=["title", "title_set_by", "updated_at"])
    if done:
        conversation.changes.create(action=Change.Action.TITLE)
    return bool(done)


def suggest_title(conversation: Conversation, text: str, seq: int | None = None) -> str:
    """Name an untitled conversation after its first message `seq`.

    Return the title, or "" if the conversation has one already.
    """
    words = " ".join(drop_fences(text).split())
    title = words if len(words) <= TITLE_CHARS else words[: TITLE_CHARS - 1] + "…"
    named = Conversation.objects.filter(
        pk=conversation.pk, title_set_by=Conversation.TitleSource.NONE
    ).update(
        title=title,
        title_set_by=Conversation.TitleSource.AUTO,
        title_seqs=None if seq is None else [seq],
    )
    return title if named else ""


def list_title_seqs(conversation: Conversation) -> list[int] | None:
    """Return the messages that the title was made of, or None if not known.

    A process of an older release writes a title without them, and records only the
    messages of its request.
    """
    rows = Conversation.objects.filter(pk=conversation.pk)
    of = rows.values_list("title_seqs", flat=True).first()
    if of is None:
        return None
    calls = conversation.model_calls.filter(purpose=ModelCall.Purpose.TITLE, error="")
    asked = calls.values_list("refs__messages", flat=True)
    read = (seq for seqs in asked if isinstance(seqs, list) for seq in seqs)
    return list(dict.fromkeys([*of, *read]))


def forget_title(conversation: Conversation, seq: int) -> None:
    """Replace a title that may be made of message `seq`, which was deleted.

    The new one is made of the first message that is left.
    """
    made = (Conversation.TitleSource.AUTO, Conversation.TitleSource.COPY)
    rows = Conversation.objects.filter(pk=conversation.pk, title_set_by__in=made)
    of = list_title_seqs(conversation)
    if of is not None and seq not in of:
        return
    if not rows.update(title="", title_set_by=Conversation.TitleSource.NONE):
        return
    said = conversation.messages.filter(role=Message.Role.USER, deleted_at=None)
    if left := said.order_by("seq").first():
        suggest_title(conversation, words_for_title(left), left.seq)


def words_for_title(message: Message) -> str:
    """Return a first message in short: the typed text, or the name of a file."""
    is_typed = not (message.attachments and is_blank(message.typed))
    return message.typed if is_typed else str(message.attachments[0]["name"])


def check_message_text(text: object, *, may_be_blank: bool = False) -> str:
    """Return the text as it will be stored, byte for byte.

    With attachments, no text is needed. Raises TextError.
    """
    limit = settings.MESSAGE_MAX_CHARS
    if not isinstance(text, str):
        raise TextError("bad_text", _("The text must be a string."))
    if is_blank(text) and not may_be_blank:
        raise TextError("empty", _("The message is empty. Type something first."))
    if len(text) > limit:
        raise TextError(
            "too_long",
            _(
                "The message has %(count)s characters; the limit is %(limit)s. "
                "Shorten it or send it in parts."
            )
            % {"count": f"{len(text):,}", "limit": f"{limit:,}"},
        )
    if not is_storable(text):
        raise TextError(
            "bad_text",
            _(
                "The message has characters that are not text (NUL or half of a "
                "surrogate pair). Remove them and send it again."
            ),
        )
    return text


def is_storable(text: str) -> bool:
    """Return whether both databases can hold the text."""
    return "\0" not in text and not re.search("[\ud800-\udfff]", text)


def check_system_prompt(text: object) -> str:
    """Return the system prompt as it will be stored; "" is the site's own.

    Raises TextError.
    """
    return check_note(text, SYSTEM_PROMPT_CHARS)


def check_note(text: object, limit: int) -> str:
    """Return what a user wrote in a form field, as it will be stored; "" for nothing.

    Raises TextError.
    """
    if not isinstance(text, str) or not is_storable(text):
        words = _("This is not text, or it has characters that can't be stored.")
        raise TextError("bad_text", words)
    text = "" if is_blank(text) else text.replace("\r\n", "\n").strip()
    if len(text) > limit:
        values = {"count": f"{len(text):,}", "limit": f"{limit:,}"}
        words = _(
            "The text has %(count)s characters; the limit is %(limit)s. Shorten it."
        )
        raise TextError("too_long", words % values)
    return text


def find_reply(messages: QuerySet[Message], seq: int) -> Message:
    """Return message `seq`; raise ActionError unless it is a reply with a text."""
    reply = messages.only("role", "tool_calls", "deleted_at").filter(seq=seq).first()
    if reply is None or not reply.is_reply:
        raise ActionError(_("There is no reply #%(seq)s.") % {"seq": seq})
    return reply


def check_client_id(client_id: object) -> str:
    if not isinstance(client_id, str) or not CLIENT_ID.fullmatch(client_id):
        raise TextError(
            "bad_client_id", _("client_id must be 1 to 64 visible ASCII characters.")
        )
    return client_id


def reserve_numbers(conversation: Conversation, count: int) -> int:
    """Return the first of `count` new message numbers.

    Locks the row until the transaction ends, so two senders get their numbers one after
    the other.
    """
    lock_for_update(conversation, count)
    (following,) = _find_next_number(pk=conversation.pk)
    _check_number(following - 1)
    return following - count


@prepared_rows()
def _find_next_number(pk: Any) -> QuerySet[Conversation, Any]:
    rows = Conversation.objects.filter(pk=pk).order_by()
    return rows.values_list("next_seq", flat=True)


def _check_number(last: int) -> None:
    if last > LAST_SEQ:
        words = _("This conversation is full: it has no more numbers for messages.")
        raise TextError("full", words)


def lock_for_update(conversation: Conversation, count: int = 0) -> None:
    """Lock the conversation until the transaction ends, before changing it.

    It counts as changed now, and `count` message numbers are taken. Raises
    Conversation.DoesNotExist when it is gone.
    """
    if not _take_numbers(pk=conversation.pk, count=count):
        raise Conversation.DoesNotExist


@prepared_update()
def _take_numbers(pk: Any, count: Any) -> Update:
    rows = Conversation.objects.filter(pk=pk)
    return rows, {"next_seq": F("next_seq") + count, "updated_at": Now()}


def return_number(conversation_id: int, seq: int) -> None:
    """Return a reserved number that no message took, if it is still the last one."""
    rows = Conversation.objects.filter(pk=conversation_id, next_seq=seq + 1)
    rows.update(next_seq=seq)


@dataclass(frozen=True, slots=True)
class MessageFiles:
    """The attachments of a message that is sent.

    `ids`: of the files. `take` removes them from where they were kept. `tokens`: how
    many of all of them a model may get. `keep` stores with the message what is not in
    its text.

    They are taken only once it is known that the message is new: after a lost answer
    the message is sent a second time, and its files are in the transcript already.
    """

    ids: Sequence[str] = ()
    take: Callable[[Sequence[str]], Sequence[Attachment]] = list
    tokens: int = 0
    keep: Callable[[Message, Sequence[Attachment]], None] = lambda message, taken: None


def _is_same(message: Message, text: str, ids: Sequence[str]) -> bool:
    known = [place["id"] for place in message.attachments]
    return message.typed == text and known == [*ids]


@transaction.atomic(savepoint=False)
def append_user_message(
    conversation: Conversation,
    *,
    text: object,
    client_id: object,
    room: int = 0,
    files: MessageFiles | None = None,
    detected_rules: Any = None,
) -> tuple[Message, bool]:
    """Store what a user sent. Return the message, and whether it is new.

    Takes two numbers, the message's and one for its reply, after `room` numbers that
    the turn before may use. `detected_rules`: the rules in the text, if they are known.
    A known client_id with the same text and files returns the message that it made;
    with others it raises ClientIdConflictError. Raises TextError for what can't be
    stored.
    """
    files = files or MessageFiles()
    text = check_message_text(text, may_be_blank=bool(files.ids))
    client_id = check_client_id(client_id)
    # Lock first: the same message may be arriving from another socket.
    lock_for_update(conversation, room + 2)
    [row] = _numbers_and_same(pk=conversation.pk, client_id=client_id)
    next_seq, conversation.rule_count, known = row
    if known is not None:
        _take_numbers(pk=conversation.pk, count=-room - 2)
        message = conversation.messages.get(pk=known)
        if not _is_same(message, text, files.ids):
            raise ClientIdConflictError
        return message, False
    _check_number(next_seq - 1)
    seq = next_seq - 2
    taken = files.take(files.ids)
    whole, places = attached.join_attachments(text, taken)
    if len(whole) > max(WHOLE_CHARS, settings.MESSAGE_MAX_CHARS):
        template = _(
            "The message and its attachments have %(count)s characters; the limit is "
            "%(limit)s. Remove one, or send them in several messages."
        )
        values = {"count": f"{len(whole):,}", "limit": f"{WHOLE_CHARS:,}"}
        raise TextError("too_long", template % values)
    message = Message(
        conversation=conversation,
        seq=seq,
        role=Message.Role.USER,
        text=whole,
        sent_text=attached.shorten_attachments(
            whole, places, room=files.tokens, seq=seq
        ),
        attachments=places,
        client_id=client_id,
    )
    _save_message(message)
    if taken:
        files.keep(message, taken)
    rule_source.find_source("rules").store_rules(message, detected_rules)
    rule_source.find_source("facts").store_rules(message, None)
    return message, True


@prepared_rows()
def _numbers_and_same(pk: Any, client_id: Any) -> QuerySet[Conversation, Any]:
    same = Message.objects.filter(conversation=OuterRef("pk"), client_id=client_id)
    rows = Conversation.objects.filter(pk=pk).order_by()
    known = Subquery(same.order_by().values("pk"))
    return rows.values_list("next_seq", "rule_count", known)


def append_reply(conversation: Conversation, **columns: Any) -> Message:
    """Store a reply of the model, as columns of Message.

    `text` and the reserved number `seq`; if it calls tools, its `tool_calls` (in
    LangChain's form: name, args and id) with the `extras` of its provider.
    """
    role = Message.Role.ASSISTANT
    return _save_message(Message(conversation=conversation, role=role, **columns))


def make_result(
    conversation: Conversation,
    *,
    call_id: str,
    request: Message | None = None,
    **columns: Any,
) -> Message:
    """Make the result of a tool call, under a reserved number, to be stored.

    `request`: the message with the call, as it is now: if it is out of the model's
    view, so is the result. `columns` are others of Message.
    """
    return Message(
        conversation=conversation,
        role=Message.Role.TOOL,
        tool_call_id=call_id,
        excluded_at=request and (request.excluded_at or request.deleted_at),
        superseded_at=request and request.superseded_at,
        **columns,
    )


def append_result(conversation: Conversation, **values: Any) -> Message:
    """Store the result that make_result() makes of these values."""
    return _save_message(make_result(conversation, **values))


@transaction.atomic
def store_results(messages: Sequence[Message]) -> None:
    """Store several results at once."""
    for message in messages:
        message.tokens = count_message(message.to_langchain())
    Message.objects.bulk_create(messages)
    recall.index_messages([*messages])


@transaction.atomic(savepoint=False)
def _save_message(message: Message) -> Message:
    message.tokens = count_message(message.to_langchain())
    insert_row(message)
    recall.index_new(message)
    return message


@transaction.atomic
def supersede_messages(
    conversation: Conversation, first: int, last: int | None = None
) -> None:
    """Remove messages `first`..`last` (default: to the end) from the model's view.

    They stay in the transcript, marked; summaries that cover them become stale. A tool
    call and its results are removed together, but a late result of an earlier call
    stays.
    """
    lock_for_update(conversation)
    rows = conversation.messages.filter(seq__gte=first).exclude(late_for__lt=first)
    if last is not None:
        rows = rows.filter(seq__lte=last)
    # Only near its ends can the range separate a call from its results.
    edges = Q(seq__lte=first + tool_groups.REACH)
    if last is not None:
        edges |= Q(seq__gte=last - tool_groups.REACH)
    ends = rows.filter(edges).values_list("seq", flat=True)
    beside = set(tool_groups.complete_groups(conversation, ends)).difference(ends)
    rows = conversation.messages.filter(Q(pk__in=rows) | Q(seq__in=beside))
    rows.filter(superseded_at=None).update(superseded_at=Now())
    end = None if last is None else max([last, *beside])
    versions.invalidate_summaries(conversation, min([first, *beside]), end)
