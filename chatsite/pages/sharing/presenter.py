"""A shared conversation as plain values for the templates: its messages, piece by piece
from the beginning, and what the model saw for a reply.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.safestring import SafeString

from chatsite.llm import providers
from chatsite.transfer import importing, shares
from chatsite.turns.models import Share
from chatsite.turns.requests import reply_call, with_model
from memory import context
from memory.models import Message, ModelCall

from .. import parts
from ..attachments import cards as attached
from ..attachments.cards import AttachmentCard
from ..presenters import context_pane
from ..presenters.context_pane import MAX_REPLIES, ContextPane
from ..presenters.tool_cards import (
    ARGUMENT_CHARS,
    arguments_of,
    visible,
    without_long_texts,
)

# Messages of one piece, and those of it before a message that was looked for.
PIECE, LEAD = 60, 6


@dataclass(frozen=True, slots=True)
class SharedMessage:
    """A message as strangers see it: without marks, and without anything to do."""

    seq: int
    role: str
    text: str
    created_at: datetime
    model: str = ""
    provider: str = ""
    is_demo: bool = False
    # Whether it can be shown what the model saw for it.
    has_view: bool = False
    reasoning: str = ""
    # Name and arguments of each call of a tool.
    calls: tuple[tuple[str, str], ...] = ()
    attachments: tuple[AttachmentCard, ...] = ()

    @property
    def html(self) -> SafeString:
        return parts.shared_message(self)


@dataclass(frozen=True, slots=True)
class Piece:
    messages: tuple[SharedMessage, ...]
    after: int | None  # the number that it begins behind
    # Set when more follow: the number that they begin behind.
    rest: int | None


@dataclass(frozen=True, slots=True)
class Seen:
    """What the model saw for one reply; `replies` are the numbers to choose from, the
    newest first. `call` None: no reply has a request that is known."""

    replies: Sequence[int]
    reply: int | None = None
    call: ModelCall | None = None
    # Whether it can be shown: not if the link lacks a message of it.
    is_whole: bool = False

    @property
    def html(self) -> SafeString:
        return parts.shared_context(self.call, self._read_pane)

    def _read_pane(self) -> ContextPane:
        return context_pane.model_view(self.call.conversation, reply=self.reply)


def read_piece(share: Share, after: int | None = None) -> Piece:
    rows = with_model(without_long_texts(shares.messages(share))).order_by("seq")
    if after:
        rows = rows.filter(seq__gt=after)
    found = list(rows[: PIECE + 1])
    shown = tuple(_shown(share, row) for row in found[:PIECE])
    return Piece(shown, after, shown[-1].seq if len(found) > PIECE else None)


def lead_to(share: Share, seq: int) -> int | None:
    """What a piece begins behind in which message `seq` is; None = the beginning."""
    rows = shares.messages(share).order_by("seq").values_list("seq", flat=True)
    if seq in rows[:PIECE]:
        return None
    return rows.filter(seq__lt=seq).reverse()[LEAD : LEAD + 1].first()


def _shown(share: Share, row: Message) -> SharedMessage:
    is_reply = row.role == Message.Role.ASSISTANT
    model = row.model or ""
    if row.imported_at and not model:
        model = importing.site_of(share.conversation.imported_from)
    return SharedMessage(
        seq=row.seq,
        role=row.role,
        text=_text_of(row),
        created_at=row.created_at,
        model=providers.label(model) if is_reply and model else "",
        provider=row.provider or "",
        is_demo=bool(row.model) and providers.is_demo(row.model),
        has_view=share.with_view and is_reply and row.model is not None,
        # A model that thinks aloud repeats what it was told.
        reasoning=row.reasoning if share.with_view else "",
        calls=tuple(map(_called, row.tool_calls)) if share.with_view else (),
        attachments=attached.cards_of(row),
    )


def _text_of(row: Message) -> str:
    if row.attachments:
        return attached.typed_of(row)
    return row.head if len(row.head) == row.chars else f"{row.head}…"


def _called(asked: dict[str, Any]) -> tuple[str, str]:
    arguments = arguments_of(asked.get("args", {}))
    if len(arguments) > ARGUMENT_CHARS:
        arguments = arguments[:ARGUMENT_CHARS] + "…"
    return visible(str(asked.get("name") or "")), arguments


def read_seen(share: Share, reply: int | None = None) -> Seen | None:
    """None: the link shows no such reply."""
    rows = shares.replies(share)
    replies = tuple(rows.values_list("seq", flat=True)[:MAX_REPLIES])
    if reply is None:
        reply = replies[0] if replies else None
    elif reply not in replies and not rows.filter(seq=reply).exists():
        return None
    if reply is None:
        return Seen(replies)
    call = reply_call(share.conversation, reply)
    return Seen(replies, reply, call, shares.is_whole(share, call))


def wire_of(seen: Seen) -> Sequence[dict[str, Any]]:
    return context.rebuild(seen.call).wire
