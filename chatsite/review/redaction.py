"""Redaction of texts of users and models.

Staff who may not read texts get rows without them, only with their lengths; a row that
says nothing about rights shows nothing.
"""

from collections.abc import Iterable
from typing import Any

from django.db.models import Model, QuerySet, TextField, Value
from django.db.models.functions import Cast, Left, Length

from chatsite.protocol.errors import EXPLANATIONS
from memory.engine import replies
from memory.engine.exceptions import SummaryError
from memory.models import Conversation, Message, ModelCall, Summary

from .rights import Rights, describe_hidden

BEGINNING = 80

# The columns of each table that can hold anything that was said, or names of it.
CONVERSATION = ("title", "system_prompt", "policy", "set_aside", "imported_from")
MESSAGE = (
    *("text", "sent_text", "reasoning", "tool_calls", "tool_call_id", "client_id"),
    *("attachments", "extras"),
)
SUMMARY = ("text", "structured", "flags")
CALL = ("refs",)
PROMPT = ("text",)
TURN = ("text",)
TEXTS: dict[Any, tuple[str, ...]] = {
    **{Conversation: CONVERSATION, Message: MESSAGE},
    **{Summary: SUMMARY, ModelCall: CALL},
}

# What the error columns hold, unless an import brought something else.
ERROR_CODES = {
    *EXPLANATIONS,
    *(kind.__name__ for kind in (SummaryError, *SummaryError.__subclasses__())),
}


def list_related_texts(model: type[Model], relations: Iterable[str]) -> list[str]:
    """Return the columns that hold texts in the tables behind relations of a model."""
    found: list[str] = []
    for name in (relation.partition("__")[0] for relation in relations):
        table = model._meta.get_field(name).related_model
        found += (f"{name}__{column}" for column in TEXTS.get(table, ()))
    return found


def mark_readable(
    rows: QuerySet,
    rights: Rights,
    own: Iterable[str],
    *,
    related: Iterable[str] = (),
    heads: Iterable[str] = (),
) -> QuerySet:
    """Return the rows without these columns, each marked with whether it may be read.

    They know how long their `own` columns are, and for staff who may read, how those in
    `heads` begin.
    """
    values: dict[str, Any] = {"may_read": Value(rights.content)}
    for name in own:
        values[f"{name}_chars"] = Length(Cast(name, TextField()))
    for name in heads if rights.content else ():
        values[f"{name}_head"] = Left(name, BEGINNING + 1)
    return rows.defer(*own, *related).annotate(**values)


def select_lasting() -> QuerySet[Conversation]:
    """Return the conversations that staff may see: not temporary ones."""
    return Conversation.objects.filter(temporary_until=None)


def select_conversations(rights: Rights) -> QuerySet[Conversation]:
    """Conversations for pages about one of them: whole for staff who may read."""
    rows = select_lasting().select_related("owner")
    if rights.content:
        return rows.annotate(may_read=Value(value=True))
    return mark_readable(rows, rights, ("title",), related=CONVERSATION)


def select_readable(rows: QuerySet, rights: Rights, columns: Iterable[str]) -> QuerySet:
    """Return the rows, without these columns for staff who may not read them."""
    return rows if rights.content else mark_readable(rows, rights, columns)


def show_row_text(row: Any, rights: Rights) -> str:
    """Return the text of a row from select_readable(), or how long it is."""
    return row.text if rights.content else show_text(row, "text")


def may_read(row: Model) -> bool:
    return getattr(row, "may_read", False) is True


def show_text(row: Model, name: str) -> str:
    """Return the text, or how long it is if it may not be read."""
    return getattr(row, name) if may_read(row) else _hide_column(row, name)


def show_beginning(row: Model, name: str) -> str:
    """Return the beginning of a text in a list, as the database sent it."""
    head = getattr(row, f"{name}_head", None) if may_read(row) else None
    if head is None:
        return _hide_column(row, name)
    return head if len(head) <= BEGINNING else head[:-1] + "…"


def show_error(row: Any) -> str:
    return row.error if may_read(row) else show_error_code(row.error)


def show_error_code(text: str) -> str:
    """Codes are for all staff; another text may tell more."""
    name, _, reason = text.partition(":")
    # What a provider calls the end of a reply is a code too.
    is_code = name in ERROR_CODES and (not reason or replies.REASON.fullmatch(reason))
    return text if is_code else describe_hidden(len(text))


def _hide_column(row: Model, name: str) -> str:
    return describe_hidden(row.__dict__.get(f"{name}_chars"))
