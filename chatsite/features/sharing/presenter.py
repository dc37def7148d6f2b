"""A shared conversation as plain values for the templates.

They are its messages, page by page from the beginning, and the context of a reply.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from django.db.models import F
from django.utils.safestring import SafeString

from chatsite.llm import providers
from chatsite.pages.citations import find_cited
from chatsite.pages.html_cache import Cache
from chatsite.pages.parts import render_once
from chatsite.pages.presenters import context_pane
from chatsite.pages.presenters.attachment_cards import (
    find_typed_text,
    make_attachment_cards,
)
from chatsite.pages.presenters.calls import (
    ARGUMENT_CHARS,
    arguments_of,
    visible,
    without_long_texts,
)
from chatsite.pages.presenters.context_pane import ContextPane
from chatsite.pages.presenters.transcript_pane import ReadableMessage
from chatsite.plugins import name_source
from chatsite.turns.requests import reply_call, with_model
from memory.models import Message, ModelCall

from .link_contents import (
    hidden_numbers,
    is_request_shown,
    shown_messages,
    shown_replies,
    shown_requests,
    shown_results,
)
from .models import Share

# Messages of one piece, and those of it before a message that was looked for.
PIECE, LEAD = 60, 6
# Replies to choose from.
MOST_REPLIES = 200
# Replies of which it is looked up at once whether what the model saw can be shown.
MOST_TRIED = 30
# The cache of shared pages, which displaces no pages of signed-in users.
CACHE_BYTES = 8 * 1024 * 1024

cache = Cache(CACHE_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedMessage(ReadableMessage):
    """A message as strangers see it: without marks, and without anything to do."""

    # True if the context of the model can be shown.
    has_view: bool = False
    # Name and arguments of each call of a tool.
    calls: tuple[tuple[str, str], ...] = ()
    with_images: bool = False
    # Numbers of messages before it that their author has hidden.
    hidden_before: tuple[int, ...] = ()

    @property
    def html(self) -> SafeString:
        """The HTML of the message, which all links of the conversation share."""
        shown = (getattr(self, field.name) for field in fields(self))
        values = {"message": self}
        return render_once(cache, "sharing/_message.html", lambda: values, *shown)


@dataclass(frozen=True, slots=True)
class SharedPiece:
    messages: tuple[SharedMessage, ...]
    after: int | None  # the number that it begins behind
    # Set when more follow: the number that they begin behind.
    rest: int | None
    # Numbers of messages behind all of these that their author has hidden.
    hidden: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SharedContext:
    """The context that the model saw for one reply.

    `replies` are the numbers to choose from, the newest first. `call` None: no reply
    has a known request.
    """

    replies: Sequence[int]
    reply: int | None = None
    call: ModelCall | None = None
    # True if it can be shown; not if the link lacks a message of it.
    is_whole: bool = False
    without_rules: bool = False
    # HTML that an app shows in place of the context.
    instead: SafeString = SafeString()

    @property
    def html(self) -> SafeString:
        """The HTML of the context, which never changes and is read only to be rendered.

        The caller has to check whether it may be shown.
        """
        shown = (self.call.pk, self.call.sha256, self.without_rules)
        return render_once(cache, "sharing/_request.html", self._read_values, *shown)

    def _read_values(self) -> dict[str, Any]:
        return {"context": self.read_pane(), "without_rules": self.without_rules}

    def read_pane(self) -> ContextPane:
        """Return the pane as the link shows it; the caller has checked that it may."""
        pane = context_pane.model_view(self.call.conversation, reply=self.reply)
        if self.without_rules:
            shown = tuple(each for each in pane.sections if each.kind != "rules")
            pane = replace(pane, sections=shown)
        return pane


def read_piece(share: Share, after: int | None = None) -> SharedPiece:
    rows = with_model(without_long_texts(shown_messages(share))).order_by("seq")
    if after:
        rows = rows.filter(seq__gt=after)
    found = list(rows[: PIECE + 1])
    said = {row.seq: row.head for row in found if row.role == Message.Role.ASSISTANT}
    cited = find_cited(share.conversation, said, shown_results(share))
    hidden = sorted(hidden_numbers(share).filter(seq__gt=after or 0))
    shown, last = [], after or 0
    for row in found[:PIECE]:
        before = tuple(seq for seq in hidden if last < seq < row.seq)
        more = {"cited": cited.get(row.seq, ()), "hidden_before": before}
        shown.append(replace(_present_message(share, row), **more))
        last = row.seq
    is_end = len(found) <= PIECE
    behind = tuple(seq for seq in hidden if seq > last) if is_end else ()
    return SharedPiece(tuple(shown), after, None if is_end else last, behind)


def lead_to(share: Share, seq: int) -> int | None:
    """Return the number behind which the page with message `seq` begins.

    None = the beginning.
    """
    rows = shown_messages(share).order_by("seq").values_list("seq", flat=True)
    if seq in rows[:PIECE]:
        return None
    return rows.filter(seq__lt=seq).reverse()[LEAD : LEAD + 1].first()


def _present_message(share: Share, row: Message) -> SharedMessage:
    is_reply = row.role == Message.Role.ASSISTANT
    model = row.model or ""
    if row.imported_at and not model:
        model = name_source(share.conversation.imported_from)
    return SharedMessage(
        seq=row.seq,
        role=row.role,
        text=shown_text_of(row),
        created_at=row.created_at,
        model=providers.name_model(model) if is_reply and model else "",
        provider=row.provider or "",
        has_view=share.with_view and is_reply and row.model is not None,
        # Reasoning can repeat the instructions of the model.
        reasoning=row.reasoning if share.with_view else "",
        calls=tuple(map(_present_call, row.tool_calls)) if share.with_view else (),
        attachments=make_attachment_cards(row),
        with_images=share.with_images,
    )


def shown_text_of(row: Message) -> str:
    if row.attachments:
        return find_typed_text(row)
    return row.head if len(row.head) == row.chars else f"{row.head}…"


def _present_call(asked: dict[str, Any]) -> tuple[str, str]:
    arguments = arguments_of(asked.get("args", {}))
    if len(arguments) > ARGUMENT_CHARS:
        arguments = arguments[:ARGUMENT_CHARS] + "…"
    return visible(str(asked.get("name") or "")), arguments


def read_seen(share: Share, reply: int | None = None) -> SharedContext | None:
    """Return the context of a reply, None if the link shows no such reply."""
    rows = shown_replies(share)
    replies = tuple(rows.values_list("seq", flat=True)[:MOST_REPLIES])
    if reply is None:
        reply = _find_shown_reply(share, replies)
    elif reply not in replies and not rows.filter(seq=reply).exists():
        return None
    if reply is None:
        return SharedContext(replies)
    call = reply_call(share.conversation, reply)
    is_whole = is_request_shown(share, call)
    return SharedContext(replies, reply, call, is_whole, share.without_rules)


def _find_shown_reply(share: Share, replies: Sequence[int]) -> int | None:
    """Return the newest reply whose context can be shown.

    If there is none among the latest, return the newest.
    """
    rows = share.conversation.model_calls.filter(purpose=ModelCall.Purpose.REPLY)
    rows = rows.order_by("id").annotate(of_seq=F("message__seq"))
    for tried in (replies[:1], replies[1:MOST_TRIED]):
        calls = {call.of_seq: call for call in rows.filter(of_seq__in=tried)}
        shown = shown_requests(share, calls.values())
        if found := [seq for seq in tried if calls.get(seq) in shown]:
            return found[0]
    return replies[0] if replies else None
