"""The transcript and its search index."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from memory.engine.attachments import (
    SHORTENED,
    Attachment,
    restore_attachments,
    typed_part,
)
from memory.engine.cut_points import LATE
from memory.engine.tools.call_forms import EXTRAS
from memory.integrity.signatures import SignatureField

from .conversation import Conversation
from .history import History


class Message(History):
    """One entry of the transcript. Its text never changes once it is written."""

    # Marks of the model's view, and of the message's origin.
    CHANGING = frozenset({"pinned_at", "excluded_at", "superseded_at", "imported_at"})
    ERASED: ClassVar = {
        **{"text": "", "sent_text": "", "reasoning": "", "tool_calls": []},
        **{"extras": {}, "attachments": [], "tokens": 0},
    }

    class Role(models.TextChoices):
        USER = "user", _("User")
        ASSISTANT = "assistant", _("Assistant")
        TOOL = "tool", _("Tool")

    conversation = models.ForeignKey(
        Conversation, models.CASCADE, related_name="messages"
    )
    seq = models.PositiveIntegerField()
    role = models.CharField(max_length=9, choices=Role)
    text = models.TextField(blank=True)
    # The shortened text for a model; "" means that the text itself is sent.
    sent_text = models.TextField(blank=True, default="", db_default="")
    # The model's reasoning before its answer: shown, and never sent to a model.
    reasoning = models.TextField(blank=True, default="", db_default="")
    tool_calls = models.JSONField(default=list, blank=True)
    # Data of the model's provider beside its calls, sent back to that provider only
    # (memory/engine/tools/call_forms.py).
    extras = models.JSONField(default=dict, db_default={}, blank=True)
    # The files in the text of a user's message, or images in the text of a reply from
    # another chat, and their places in it: see memory/engine/attachments.py. The typed
    # text comes before them.
    attachments = models.JSONField(default=list, db_default=[], blank=True)
    tool_call_id = models.CharField(max_length=100, blank=True)
    # For a result that came after its call was answered: the number of the message with
    # the call. Such a result is quoted to the model and answers no call.
    late_for = models.PositiveIntegerField(null=True, blank=True)
    # Chosen by the client, so that a message sent twice is stored once.
    client_id = models.CharField(max_length=64, null=True, blank=True)  # noqa: DJ001
    tokens = models.PositiveIntegerField()
    pinned_at = models.DateTimeField(null=True, blank=True)
    excluded_at = models.DateTimeField(null=True, blank=True)
    superseded_at = models.DateTimeField(null=True, blank=True)
    # The text is erased then.
    deleted_at = models.DateTimeField(null=True, blank=True)
    # Written elsewhere: no request is known.
    imported_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    signature = SignatureField(
        of=(
            *("conversation_id", "seq", "role", "text", "tool_calls", "tool_call_id"),
            *("deleted_at", "created_at"),
        ),
        later=("reasoning", "sent_text", "late_for", "attachments", "extras"),
    )

    class Meta(History.Meta):
        ordering = ["conversation", "seq"]
        indexes = [
            # Every context needs the pinned messages, of which there are few.
            models.Index(
                fields=["conversation", "seq"],
                condition=Q(pinned_at__isnull=False),
                name="message_pinned",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["conversation", "seq"], name="message_seq_unique"
            ),
            models.UniqueConstraint(
                fields=["conversation", "client_id"], name="message_client_id_unique"
            ),
            models.CheckConstraint(condition=Q(seq__gte=1), name="message_seq_from_1"),
        ]

    @property
    def typed(self) -> str:
        """The text without attachments."""
        return typed_part(self.text, self.attachments)

    @property
    def files(self) -> list[Attachment]:
        return restore_attachments(self.text, self.attachments)

    @property
    def is_reply(self) -> bool:
        """True if the message ends its turn, and still has its text."""
        is_answer = self.role == self.Role.ASSISTANT and not self.tool_calls
        return is_answer and self.deleted_at is None

    def to_langchain(self) -> BaseMessage:
        """Return the message as the model gets it; that form is never stored."""
        return as_langchain(*(getattr(self, name) for name in SENT))

    @classmethod
    def check_change(cls, values: Mapping[str, Any]) -> None:
        gone = all(values.get(name) == value for name, value in cls.ERASED.items())
        if gone and values.get("deleted_at"):
            erased = {*cls.ERASED, "deleted_at"}
            values = {name: values[name] for name in values if name not in erased}
        super().check_change(values)

    def __str__(self) -> str:
        return f"#{self.seq} {self.role}"


# The columns of a message that a model sees, or that a policy needs.
SENT = (
    *("seq", "role", "text", "created_at", "tool_calls", "tool_call_id", "sent_text"),
    *("late_for", "extras"),
)


def replace_columns(row: Sequence[Any], **values: Any) -> tuple[Any, ...]:
    """Return the columns SENT of a message with some values replaced."""
    return tuple(values.get(name, value) for name, value in zip(SENT, row, strict=True))


def as_langchain(
    seq: int,
    role: str,
    text: str,
    created_at: datetime | None,
    tool_calls: list[dict[str, Any]],
    tool_call_id: str,
    sent_text: str = "",
    late_for: int | None = None,
    extras: dict[str, Any] | None = None,
) -> BaseMessage:
    """Return the columns SENT as a LangChain message.

    Its id is the number. The age and idle triggers read `created_at`, and the code that
    arranges tool calls reads `late_for`.
    """
    noted: dict[str, Any] = {"created_at": created_at}
    if late_for is not None:
        noted[LATE] = late_for
    if extras:
        noted[EXTRAS] = extras
    if sent_text and role == Message.Role.USER:
        noted[SHORTENED] = True
    common = {"content": sent_text or text, "id": str(seq), "additional_kwargs": noted}
    if role == Message.Role.USER:
        return HumanMessage(**common)
    if role == Message.Role.TOOL:
        return ToolMessage(tool_call_id=tool_call_id, **common)
    return AIMessage(tool_calls=tool_calls, **common)


def read_langchain(rows: models.QuerySet[Message]) -> list[BaseMessage]:
    """Return to_langchain() of all rows, without an object for each."""
    return [as_langchain(*values) for values in rows.values_list(*SENT)]


class RecallEntry(models.Model):
    """The search index entry of one message; written by recall.py alone.

    The database's own text index over it is made in a migration: FTS5 for SQLite, GIN
    for PostgreSQL.
    """

    message = models.OneToOneField(
        Message, models.CASCADE, primary_key=True, related_name="recall_entry"
    )
    seq = models.PositiveIntegerField()
    terms = models.TextField(blank=True)
    # The number of passages in `terms`; None: indexed by an older release.
    passages = models.PositiveIntegerField(null=True)
    # On PostgreSQL, followed by the keys of the message's stretches.
    dates = models.TextField(blank=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"#{self.seq}"
