"""Rows of statements: their words, their number, and what is believed of a file."""

from typing import Any

from django.db.models import F, QuerySet, TextField, Value
from django.db.models.functions import Coalesce, NullIf, Substr
from django.utils.translation import gettext as _
from pydantic import BaseModel

from memory import transcript
from memory.models import Message

# A statement in its words, without the whole text of its message.
WORDS = Coalesce(
    NullIf("text", Value("", TextField())),
    Substr(
        *("message__text", F("start") + 1, F("end") - F("start")),
        output_field=TextField(),
    ),
    output_field=TextField(),
)


def drop_oldest(rows: QuerySet, *bounds: tuple[tuple[str, ...], int]) -> None:
    """Keep of the rows in each group of states so many, the newest."""
    for states, most in bounds:
        some = rows.filter(state__in=states).order_by("-pk")
        if old := list(some.values_list("pk", flat=True)[most:]):
            rows.model.objects.filter(pk__in=old).delete()


def read_rows(rows: QuerySet, row: type[BaseModel]) -> list[dict[str, Any]]:
    """Return the rows for a file, with the number of their message."""
    columns = [name for name in row.model_fields if name != "seq"]
    return list(rows.order_by("pk").values(*columns, seq=F("message__seq")))


def is_stated(message: Message | None, row: Any, longest: int) -> bool:
    """Return whether `row` of a file is a part of an existing message of a user."""
    if message is None or message.role != Message.Role.USER or message.deleted_at:
        return False
    return row.start < row.end <= min(len(message.text), row.start + longest)


def describe_lost(name: object, count: int, most: int) -> str:
    """Return a sentence on the offers of a file for which there was no room."""
    if count <= 0:
        return ""
    words = _(
        "Not imported, as %(limit)s can wait for an answer: %(count)s of its %(name)s."
    )
    return words % {"count": count, "name": name, "limit": most}


def check_words(text: object, longest: int) -> str:
    """Return the user's new wording.

    Raises TextError if it can't be stored, ActionError if it is too long.
    """
    text = transcript.check_message_text(text).strip()
    if len(text) > longest:
        said = _(
            "The text has %(count)s characters; the limit is %(limit)s. Shorten it."
        )
        raise transcript.ActionError(said % {"count": len(text), "limit": longest})
    return text
