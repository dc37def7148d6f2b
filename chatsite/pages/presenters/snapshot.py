"""The left pane as it was when one reply was requested.

It shows the messages by then, and where the model saw them, by the references of that
request.
"""

from dataclasses import dataclass, replace
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from chatsite.features.tools.registry import label_of
from chatsite.llm import providers
from chatsite.turns.requests import with_model
from memory.models import Conversation, Message, ModelCall, Summary
from memory.ranges import is_within

from .attachment_cards import find_typed_text
from .calls import without_long_texts
from .locations import Location, find_behind
from .transcript_pane import ReadableMessage

PAGE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PastMessage(ReadableMessage):
    """A message as it was; a line under it marks the end of the summary `ends`."""

    location: Location
    pinned: bool = False
    ends: Summary | None = None
    calls: tuple[str, ...] = ()  # labels of the tools that it asked for
    files: tuple[str, ...] = ()  # names of what is attached


def messages_at(
    conversation: Conversation, call: ModelCall, among: QuerySet[Message] | None = None
) -> list[PastMessage]:
    """Return the latest messages up to the reply of `call`, oldest first.

    `among`: only of these.
    """
    reply, refs = call.message.seq, call.refs
    rows = conversation.messages.all() if among is None else among
    rows = rows.filter(seq__lte=reply).order_by("-seq")
    rows = with_model(without_long_texts(rows))[:PAGE]
    summaries = conversation.summaries.filter(version__in=refs["summaries"])
    ordered = list(summaries.order_by("first_seq"))
    shown: list[PastMessage] = []
    for row in reversed(rows):
        location = _locate_message(row.seq, refs, ordered, reply)
        if location is None and (row.superseded_at or row.deleted_at):
            continue  # gone before or after: the references do not tell
        if location and location.kind == "window" and row.sent_chars:
            location = replace(location, text=_("sent in part"))
        shown.append(
            PastMessage(
                seq=row.seq,
                role=row.role,
                text=find_typed_text(row),
                created_at=row.created_at,
                location=location or Location("excluded", _("not sent")),
                model=providers.name_model(row.model or ""),
                pinned=is_within(row.seq, refs["pinned"]),
                calls=tuple(label_of(str(call.get("name"))) for call in row.tool_calls),
                files=tuple(file["name"] for file in row.attachments),
            )
        )
    for summary in ordered:
        covered = sum(message.seq <= summary.last_seq for message in shown)
        if covered:
            shown[covered - 1] = replace(shown[covered - 1], ends=summary)
    return shown


def _locate_message(
    seq: int, refs: dict[str, Any], summaries: list[Summary], reply: int
) -> Location | None:
    if seq == reply:
        return Location("reply", _("the reply"))
    if seq == refs["newest"]:
        return Location("sending", _("newest message"))
    if is_within(seq, [*refs["window"], *refs.get("steps", ())]):
        return Location("window", _("sent in full"))
    if seq in refs["recalled"]:
        return Location("recalled", _("recalled"))
    return find_behind(seq, summaries)
