"""*You see*: the whole transcript as plain values for the templates, turn by turn, with
a mark on every message that says where the model sees it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import blake2b
from itertools import groupby

from django.db.models import Count, Q

from chatsite.llm import providers
from chatsite.protocol.errors import explain
from chatsite.turns.models import Turn
from chatsite.turns.requests import has_request, model_of
from memory import context, versions
from memory.models import Conversation, Message, Summary

from .. import incremental
from .locations import Mark, mark_of

# A few screens: the first paint waits for them, and the way up loads more in time.
PAGE_TURNS = 30
# Turns shown before a message that was looked for.
LEAD_TURNS = 5


@dataclass(frozen=True, slots=True)
class Entry:
    """One message as shown on the left."""

    seq: int
    role: str
    text: str
    created_at: datetime
    mark: Mark
    # Of the turn that the message belongs to: queued, running, done, stopped, failed,
    # truncated or interrupted.
    state: str
    reasoning: str = ""  # what the model thought before it answered
    model: str = ""
    is_demo: bool = False
    pinned: bool = False
    # Whether it can be shown what the model saw for this reply: imported ones came
    # without their requests.
    has_request: bool = True
    is_imported: bool = False


@dataclass(frozen=True, slots=True)
class TurnView:
    """A user message and its replies; `entries` holds superseded ones too."""

    id: int
    state: str
    attempt: int
    text_attempt: int  # the one that has saved the text so far
    entries: tuple[Entry, ...]
    # The running reply as far as it was saved; None unless queued or running.
    partial: str | None = None
    grown: incremental.View = incremental.View()
    reply_seq: int = 0
    position: int = 0
    error: str = ""  # a full sentence for people, or ""
    can_retry: bool = False
    can_regenerate: bool = False
    model: str = ""
    is_demo: bool = False

    @property
    def digest(self) -> str:
        """Tells a page whether it shows this turn as it is."""
        return blake2b(repr(self).encode(), digest_size=6).hexdigest()

    @property
    def is_superseded(self) -> bool:
        """Whether all of it is an earlier wording, by now."""
        return bool(self.entries) and all(
            entry.mark.kind == "superseded" for entry in self.entries
        )

    @property
    def versions(self) -> tuple[Entry, ...]:
        """The replies to leaf through, oldest first; () while there is just one, or
        one is being written."""
        replies = tuple(e for e in self.entries if e.role == Message.Role.ASSISTANT)
        return replies if len(replies) > 1 and self.partial is None else ()

    @property
    def spoken(self) -> tuple[Entry, ...]:
        """The entries that stand one below the other."""
        versions = self.versions
        return tuple(entry for entry in self.entries if entry not in versions)


@dataclass(frozen=True, slots=True)
class Divider:
    """The line drawn where one active summary's range ends."""

    summary: Summary
    covered: int  # messages


@dataclass(frozen=True, slots=True)
class TranscriptPane:
    items: tuple[TurnView | Divider, ...]
    total: int
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
        """What to pass as `before` to get the earlier turns."""
        return self.items[0].id if self.previous else None


def transcript(
    conversation: Conversation, *, before: int | None = None, turns: int = PAGE_TURNS
) -> TranscriptPane:
    """The latest `turns` turns, or those before turn id `before`."""
    rows = conversation.turns.select_related("user_message").order_by("-id")
    if before:
        rows = rows.filter(id__lt=before)
    page = list(rows[: turns + 1])
    shown = list(reversed(page[:turns]))
    previous = page[turns].pk if len(page) > turns else None
    return _pane(conversation, shown, previous)


def around(conversation: Conversation, seq: int | None) -> TranscriptPane | None:
    """The turns about message `seq`, if it stands before the latest page."""
    rows = conversation.turns.select_related("user_message").order_by("-id")
    latest = rows.values_list("id", flat=True)[:PAGE_TURNS]
    found = list(rows.filter(user_message__seq__lte=seq or 0)[: LEAD_TURNS + 1])
    if not found or found[0].pk >= min(latest):
        return None
    shown = found[:LEAD_TURNS][::-1]
    previous = found[LEAD_TURNS].pk if len(found) > LEAD_TURNS else None
    return _upto(conversation, shown, min(latest), previous)


def between(conversation: Conversation, after: int, before: int) -> TranscriptPane:
    """Turns that follow turn id `after`, as far as turn id `before`."""
    return _upto(conversation, [], before, None, after=after)


def _upto(
    conversation: Conversation,
    turns: list[Turn],
    before: int,
    previous: int | None,
    *,
    after: int = 0,
) -> TranscriptPane:
    """These turns and a page of those that follow; the gap that is then left."""
    last = turns[-1].pk if turns else after
    rows = conversation.turns.select_related("user_message").order_by("id")
    following = list(rows.filter(id__gt=last, id__lt=before)[: PAGE_TURNS + 1])
    shown = turns + following[:PAGE_TURNS]
    gap = (shown[-1].pk, before) if len(following) > PAGE_TURNS else None
    return _pane(conversation, shown, previous, gap)


def _pane(
    conversation: Conversation,
    shown: list[Turn],
    previous: int | None,
    gap: tuple[int, int] | None = None,
) -> TranscriptPane:
    summaries = versions.active(conversation)
    return TranscriptPane(
        items=tuple(_items(conversation, shown, summaries)),
        total=conversation.messages.count(),
        previous=previous,
        gap=gap,
    )


def turn_view(conversation: Conversation, turn_id: int) -> TurnView:
    """One turn as it stands now. Raises Turn.DoesNotExist."""
    turn = conversation.turns.select_related("user_message").get(pk=turn_id)
    views = _views(conversation, [turn], versions.active(conversation))
    return next(views)


def _items(
    conversation: Conversation, turns: list[Turn], summaries: list[Summary]
) -> Iterator[TurnView | Divider]:
    if not turns:
        return
    views = list(_views(conversation, turns, summaries))
    starts = [turn.user_message.seq for turn in turns]
    ends = [*starts[1:], _next_start(conversation, turns)] if turns else []
    ended = [
        [row for row in summaries if start <= row.last_seq and _is_before(row, end)]
        for start, end in zip(starts, ends, strict=True)
    ]
    covered = _count_covered(conversation, [row for rows in ended for row in rows])
    for view, rows in zip(views, ended, strict=True):
        yield view
        for row in rows:
            yield Divider(row, covered[str(row.version)])


def _is_before(summary: Summary, seq: int | None) -> bool:
    return seq is None or summary.last_seq < seq


def _count_covered(
    conversation: Conversation, summaries: list[Summary]
) -> dict[str, int]:
    """How many messages that the model would see each of them stands for."""
    if not summaries:
        return {}
    spans = {str(row.version): (row.first_seq, row.last_seq) for row in summaries}
    counts = {name: Count("pk", Q(seq__range=span)) for name, span in spans.items()}
    return context.visible(conversation).aggregate(**counts)


def _next_start(conversation: Conversation, turns: list[Turn]) -> int | None:
    """The number of the first message after these turns."""
    if not turns:
        return None
    following = conversation.turns.filter(id__gt=turns[-1].pk).order_by("id")
    return following.values_list("user_message__seq", flat=True).first()


def _views(
    conversation: Conversation, turns: list[Turn], summaries: list[Summary]
) -> Iterator[TurnView]:
    messages = _messages_of(conversation, turns)
    last = conversation.turns.order_by("-id").values_list("id", flat=True).first()
    waiting = list(
        conversation.turns.filter(state__in=Turn.UNFINISHED)
        .order_by("id")
        .values_list("id", flat=True)
    )
    for turn in turns:
        model = turn.model or model_of(conversation)
        finished = turn.is_finished
        yield TurnView(
            id=turn.pk,
            state=turn.state,
            attempt=turn.attempt - turn.attempts_before,
            text_attempt=turn.text_attempt,
            entries=tuple(
                _entry(row, turn, summaries, model) for row in messages[turn.pk]
            ),
            partial=None if finished else turn.text,
            grown=_grown(turn),
            reply_seq=turn.reply_seq,
            position=0 if finished else waiting.index(turn.pk),
            error=explain(turn.error) if turn.error else "",
            can_retry=turn.pk == last
            and turn.state in Turn.RETRYABLE
            and turn.user_message.deleted_at is None,
            can_regenerate=turn.pk == last
            and turn.state == Turn.State.DONE
            and turn.user_message.deleted_at is None,
            model=providers.label(model),
            is_demo=providers.is_demo(model),
        )


def _grown(turn: Turn) -> incremental.View:
    if turn.is_finished or not turn.text:
        return incremental.View()
    return incremental.view_of(turn.pk, turn.text_attempt, turn.text)


def _messages_of(
    conversation: Conversation, turns: list[Turn]
) -> dict[int, list[Message]]:
    """The messages of each turn: from its user message to the next turn's."""
    if not turns:
        return {}
    starts = [(turn.user_message.seq, turn.pk) for turn in turns]
    end = _next_start(conversation, turns)
    rows = conversation.messages.filter(seq__gte=starts[0][0]).order_by("seq")
    rows = rows.annotate(has_request=has_request())
    if end:
        rows = rows.filter(seq__lt=end)

    def turn_of(row: Message) -> int:
        return next(pk for seq, pk in reversed(starts) if seq <= row.seq)

    grouped = {pk: list(group) for pk, group in groupby(rows, key=turn_of)}
    return {turn.pk: grouped.get(turn.pk, []) for turn in turns}


def _entry(row: Message, turn: Turn, summaries: list[Summary], model: str) -> Entry:
    is_reply = row.role != Message.Role.USER
    return Entry(
        seq=row.seq,
        role=row.role,
        text=row.text,
        created_at=row.created_at,
        mark=mark_of(row, turn.state, summaries),
        state=turn.state,
        reasoning=row.reasoning,
        model=providers.label(model) if is_reply else "",
        is_demo=is_reply and providers.is_demo(model),
        pinned=row.pinned_at is not None,
        has_request=row.has_request,
        is_imported=row.imported_at is not None,
    )
