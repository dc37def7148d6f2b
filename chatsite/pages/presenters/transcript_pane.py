"""*You see*: the whole transcript as plain values for the templates, turn by turn.

Every message has its location: where the model sees it.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import blake2b
from itertools import groupby
from math import inf
from typing import Any

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.utils.translation import gettext as _

from chatsite import plugins
from chatsite.features.tools.cards.tool_cards import ToolCard, read_cards
from chatsite.llm import providers
from chatsite.plugins import name_source
from chatsite.protocol.errors import explain_code
from chatsite.slots import message_columns, read_message_rows
from chatsite.turns.copying.copies import NO_REPLY
from chatsite.turns.models import ONLY_ATTEMPT, Turn
from chatsite.turns.requests import model_of, with_model
from memory import context, versions
from memory.models import Conversation, Message, Summary
from memory.sql import prepared_rows

from .. import incremental
from ..citations import CitedSource, find_cited
from .attachment_cards import AttachmentCard, find_typed_text, make_attachment_cards
from .calls import without_long_texts
from .locations import Location, location_of, states_of

# A few screens: the first paint waits for them, and the way up loads more in time.
PAGE_TURNS = 20
# Turns shown before a message that was looked for.
LEAD_TURNS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadableMessage:
    """One message as all who may read it see it, on a page or on a link."""

    seq: int
    role: str
    text: str
    created_at: datetime
    reasoning: str = ""  # what the model thought before it answered
    model: str = ""
    provider: str = ""
    attachments: tuple[AttachmentCard, ...] = ()
    # The sources in its text.
    cited: tuple[CitedSource, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMessage(ReadableMessage):
    """One message as shown on the left."""

    location: Location
    pinned: bool = False
    # Whether it can be shown what the model saw for this reply: imported ones came
    # without their requests.
    has_request: bool = True
    is_imported: bool = False
    superseded_at: datetime | None = None
    # The steps that it asked for; of a result that stands alone, its own.
    is_step: bool = False
    cards: tuple[ToolCard, ...] = ()
    # Characters that models get of a message with attachments, where that is less.
    sent: tuple[int, int] | None = None
    # What apps have asked for: see chatsite.slots.SlotPart.
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_reply(self) -> bool:
        """True if it ends its turn; a message that calls tools continues it."""
        return self.role == Message.Role.ASSISTANT and not self.is_step


@dataclass(frozen=True, slots=True)
class TurnView:
    """A user message and its replies; `messages` holds superseded ones too."""

    id: int
    state: str
    attempt: int
    text_attempt: int  # the one that has saved the text so far
    messages: tuple[ShownMessage, ...]
    # The running reply as far as it was saved; None unless queued or running.
    partial: str | None = None
    rendered: incremental.RenderedReply = incremental.RenderedReply()
    reply_seq: int = 0
    position: int = 0
    error: str = ""  # a full sentence for people, or ""
    # Another site or client has no reply to it.
    is_unanswered: bool = False
    can_retry: bool = False
    can_regenerate: bool = False
    model: str = ""

    @property
    def digest(self) -> str:
        """Tells a page whether it shows this turn as it is."""
        return blake2b(repr(self).encode(), digest_size=6).hexdigest()

    @property
    def says_end(self) -> bool:
        """True if the page says how the turn ended without a reply.

        Not if the user has already written again; if a reply can be had, it is offered.
        """
        is_told = self.can_retry or not self.is_unanswered
        return self.state != Turn.State.DONE and is_told and not self.is_superseded

    @property
    def is_superseded(self) -> bool:
        kinds = {message.location.kind for message in self.messages}
        return kinds == {"superseded"}

    @property
    def cards(self) -> tuple[ToolCard, ...]:
        return tuple(card for message in self.messages for card in message.cards)

    @property
    def is_in_steps(self) -> bool:
        """True if calls go on before the model does."""
        return any(card.is_open for card in self.cards)

    @property
    def versions(self) -> tuple[tuple[ShownMessage, ...], ...]:
        """The replies, oldest first, each with the tool calls that led to it.

        () while there is just one, or one is being written.
        """
        found: list[tuple[ShownMessage, ...]] = []
        before = None
        for row in self.messages:
            if row.role != Message.Role.ASSISTANT:
                continue
            goes_on = before and row.superseded_at == before.superseded_at
            if goes_on and not before.is_reply:
                found[-1] += (row,)
            else:
                found.append((row,))
            before = row
        return tuple(found) if len(found) > 1 and self.partial is None else ()

    @property
    def single_messages(self) -> tuple[ShownMessage, ...]:
        """All but the versions of the reply."""
        versions = {row.seq for version in self.versions for row in version}
        return tuple(row for row in self.messages if row.seq not in versions)


@dataclass(frozen=True, slots=True)
class Divider:
    """The line drawn where one active summary's range ends."""

    summary: Summary
    covered: int  # messages


@dataclass(frozen=True, slots=True)
class TranscriptPane:
    items: tuple[TurnView | Divider, ...]
    # Set when earlier turns exist: the one that the first turn of the page follows.
    previous: int | None
    # Set when there is a gap before the turns that follow on the page: its two sides.
    gap: tuple[int, int] | None = None

    def one_by_one(self) -> Iterator["TranscriptPane"]:
        """Panes of one item each, to be drawn one after the other."""
        for item in self.items:
            is_first = item is self.items[0]
            previous = self.previous if is_first else None
            yield replace(self, items=(item,), previous=previous)

    @property
    def earlier(self) -> int | None:
        """The value for `before` to get the earlier turns."""
        return self.items[0].id if self.previous else None


def show_latest_turns(
    conversation: Conversation, *, before: int | None = None
) -> TranscriptPane:
    """Return the latest page of turns, or the one before turn id `before`."""
    rows = _with_message(conversation.turns.order_by("-id"))
    if before:
        rows = rows.filter(id__lt=before)
    page = list(rows[: PAGE_TURNS + 1])
    previous = page[PAGE_TURNS].pk if len(page) > PAGE_TURNS else None
    return _make_pane(conversation, page[:PAGE_TURNS][::-1], previous)


def hash_state(conversation: Conversation, pane: TranscriptPane) -> str:
    """Return a hash that differs once anything has changed that the page shows.

    Changes of rules and facts are in no column of the conversation, but are recorded.
    """
    row = [getattr(conversation, f.attname) for f in conversation._meta.concrete_fields]
    changed = conversation.changes.order_by("-pk").values_list("pk", flat=True).first()
    return blake2b(repr((row, changed, pane.items)).encode(), digest_size=6).hexdigest()


def show_turns_around(
    conversation: Conversation, seq: int | None
) -> TranscriptPane | None:
    """Return the turns around message `seq`, if it is before the latest page."""
    if seq is None:
        return None
    rows = _with_message(conversation.turns.order_by("-id"))
    latest = rows.values_list("id", flat=True)[:PAGE_TURNS]
    found = list(rows.filter(user_message__seq__lte=seq)[: LEAD_TURNS + 1])
    if not found or found[0].pk >= min(latest):
        return None
    previous = found[LEAD_TURNS].pk if len(found) > LEAD_TURNS else None
    lead = found[:LEAD_TURNS][::-1]
    return show_turns_between(conversation, lead[-1].pk, min(latest), lead, previous)


def show_turns_between(
    conversation: Conversation,
    after: int,
    before: int,
    lead: Sequence[Turn] = (),
    previous: int | None = None,
) -> TranscriptPane:
    """Return turns that follow turn id `after`, as far as turn id `before`.

    They are a page of turns behind those of `lead`; then comes the gap that is left.
    """
    rows = conversation.turns.filter(id__gt=after, id__lt=before).order_by("id")
    following = list(_with_message(rows)[: PAGE_TURNS + 1])
    shown = [*lead, *following[:PAGE_TURNS]]
    gap = (shown[-1].pk, before) if len(following) > PAGE_TURNS else None
    return _make_pane(conversation, shown, previous, gap)


def show_message(conversation: Conversation, seq: int) -> ShownMessage | None:
    """Return one message for its menu, without the rows that parts show beside it."""
    rows = _select_messages(conversation=conversation.pk, start=seq, end=seq + 1)
    if not rows:
        return None
    [row] = rows
    row.conversation = conversation
    state = states_of(conversation, [seq]).get(seq)
    location = location_of(row, state, versions.active_summaries(conversation))
    return _show_message(row, location, row.model or "", {})


def _with_message(rows: QuerySet[Turn]) -> QuerySet[Turn]:
    # Its text is read with the other messages.
    rows = rows.select_related("user_message")
    return rows.defer("user_message__text", "user_message__sent_text")


def _make_pane(
    conversation: Conversation,
    turns: list[Turn],
    previous: int | None,
    gap: tuple[int, int] | None = None,
) -> TranscriptPane:
    summaries = versions.active_summaries(conversation)
    items = tuple(_list_items(conversation, turns, summaries))
    return TranscriptPane(items, previous, gap)


def turn_view(conversation_id: int, turn_id: int) -> tuple[Conversation, TurnView]:
    """One turn as it stands now, with its conversation. Raises Turn.DoesNotExist."""
    found = _turn_before_next(conversation=conversation_id, turn=turn_id)
    if not found:
        raise Turn.DoesNotExist
    [turn] = found
    conversation = turn.conversation
    active = versions.active_summaries(conversation)
    return conversation, next(_view_turns(conversation, found, turn.next_start, active))


@prepared_rows()
def _turn_before_next(conversation: Any, turn: Any) -> QuerySet[Turn]:
    following = Turn.objects.filter(
        conversation_id=OuterRef("conversation_id"), id__gt=OuterRef("pk")
    )
    next_start = following.order_by("id").values("user_message__seq")[:1]
    rows = _with_message(Turn.objects.filter(conversation=conversation, pk=turn))
    rows = rows.select_related("conversation")
    return rows.annotate(next_start=Subquery(next_start)).order_by()


def _list_items(
    conversation: Conversation, turns: list[Turn], summaries: list[Summary]
) -> Iterator[TurnView | Divider]:
    """Yield the turns, each before the dividers of the summaries that end in it."""
    if not turns:
        return
    following = conversation.turns.filter(id__gt=turns[-1].pk).order_by("id")
    next_start = following.values_list("user_message__seq", flat=True).first()
    starts = [turn.user_message.seq for turn in turns]
    ended = [
        [row for row in summaries if start <= row.last_seq and row.last_seq < end]
        for start, end in zip(starts, [*starts[1:], next_start or inf], strict=True)
    ]
    # How many messages that the model would see each of them covers.
    counts = {
        str(row.version): Count("pk", Q(seq__range=(row.first_seq, row.last_seq)))
        for rows in ended
        for row in rows
    }
    visible = context.visible_messages(conversation)
    covered = visible.aggregate(**counts) if counts else {}
    views = _view_turns(conversation, turns, next_start, summaries)
    for view, rows in zip(views, ended, strict=True):
        yield view
        for row in rows:
            yield Divider(row, covered[str(row.version)])


def _view_turns(
    conversation: Conversation,
    turns: list[Turn],
    end: int | None,
    summaries: list[Summary],
) -> Iterator[TurnView]:
    """`end`: the number of the first message after these turns."""
    messages = _messages_by_turn(conversation, turns, end)
    states = {
        row.seq: turn.state for turn in turns for row in messages.get(turn.pk, [])
    }

    def locate(row: Message) -> Location:
        return location_of(row, states.get(row.seq), summaries)

    every = [row for rows in messages.values() for row in rows]
    cards = read_cards(conversation, turns, every, locate)
    waiting = _find_waiting(conversation, turns)
    beside = read_message_rows(conversation, turns[0].user_message.seq, end)
    said = {row.seq: row.head for row in every if row.role == Message.Role.ASSISTANT}
    cited = find_cited(conversation, said)
    is_ours = not plugins.find_write_refusal(conversation)
    for turn in turns:
        finished = turn.is_finished
        is_last = end is None and turn is turns[-1]
        can_repeat = is_ours and is_last and turn.user_message.deleted_at is None
        rendered = incremental.RenderedReply()
        if not finished and turn.text:
            rendered = incremental.view_of(turn.pk, turn.text_attempt, turn.text)
        yield TurnView(
            id=turn.pk,
            state=turn.state,
            attempt=min(turn.attempt - turn.attempts_before, ONLY_ATTEMPT)
            % ONLY_ATTEMPT,
            text_attempt=turn.text_attempt,
            messages=tuple(
                replace(
                    _show_message(
                        row, locate(row), _author_of(row, turn, conversation), beside
                    ),
                    cards=shown or (),
                    cited=cited.get(row.seq, ()),
                )
                for row in messages.get(turn.pk, [])
                if (shown := cards.get(row.seq)) or row.role != Message.Role.TOOL
            ),
            partial=None if finished else turn.text,
            rendered=rendered,
            reply_seq=turn.reply_seq,
            position=0 if finished else sum(other < turn.pk for other in waiting),
            error=explain_code(turn.error) if turn.error else "",
            is_unanswered=turn.error == NO_REPLY,
            can_retry=can_repeat and turn.state in Turn.RETRYABLE,
            can_regenerate=can_repeat and turn.state == Turn.State.DONE,
            model=providers.name_model(turn.model or model_of(conversation)),
        )


def _find_waiting(conversation: Conversation, turns: list[Turn]) -> list[int]:
    """Return the conversation's unfinished turns, if one of these waits for others."""
    if all(turn.state != Turn.State.QUEUED for turn in turns):
        return []
    rows = conversation.turns.filter(state__one_of=Turn.UNFINISHED).order_by("id")
    return list(rows.values_list("id", flat=True))


def _messages_by_turn(
    conversation: Conversation, turns: list[Turn], end: int | None
) -> dict[int, list[Message]]:
    """Return the messages of each turn: from its user message to the next turn's."""
    starts = [turn.user_message.seq for turn in turns]
    edges = {"start": starts[0], **({"end": end} if end else {})}
    rows = _select_messages(conversation=conversation.pk, **edges)
    for row in rows:
        row.conversation = conversation

    def turn_of(row: Message) -> int:
        return turns[bisect_right(starts, row.seq) - 1].pk

    return {pk: list(group) for pk, group in groupby(rows, key=turn_of)}


@prepared_rows()
def _select_messages(
    conversation: Any, start: Any, end: Any = None
) -> QuerySet[Message]:
    rows = Message.objects.filter(conversation=conversation, seq__gte=start)
    if end:
        rows = rows.filter(seq__lt=end)
    rows = with_model(without_long_texts(rows.order_by("seq")))
    return rows.annotate(**message_columns())


def _author_of(row: Message, turn: Turn, conversation: Conversation) -> str:
    """Return the model that wrote a reply.

    Without a request of its own, the turn may have the name; for an imported one, only
    until another reply is written here.
    """
    if row.model:
        return row.model
    if row.imported_at and (turn.call_id or not turn.model):
        return name_source(conversation.imported_from)
    return turn.model or model_of(conversation)


def _show_message(
    row: Message,
    location: Location,
    model: str,
    beside: Mapping[str, Mapping[int, Any]],
) -> ShownMessage:
    is_reply = row.role != Message.Role.USER
    # Characters that models get of it, and that it has; None: all of it.
    sent = (row.sent_chars, row.chars) if row.attachments and row.sent_chars else None
    if sent and location.kind == "window":
        location = replace(location, text=_("in part"))
    return ShownMessage(
        seq=row.seq,
        role=row.role,
        # Of a result that stands alone, its card has the text.
        text="" if row.role == Message.Role.TOOL else find_typed_text(row),
        created_at=row.created_at,
        location=location,
        reasoning=row.reasoning,
        model=providers.name_model(model) if is_reply else "",
        provider=row.provider or "",
        pinned=row.pinned_at is not None,
        has_request=row.model is not None,
        is_imported=row.imported_at is not None,
        superseded_at=row.superseded_at,
        is_step=bool(row.tool_calls),
        attachments=make_attachment_cards(row),
        sent=sent,
        extra={
            **{name: getattr(row, name) for name in message_columns()},
            **{name: found.get(row.seq) for name, found in beside.items()},
        },
    )
