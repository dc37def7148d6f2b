"""The two views of a conversation as plain values, ready for templates and JSON.

Left, *You see*: the whole transcript, turn by turn, with a mark on every message.
Right, *The model sees*: the context of the next turn, or of one reply as it was sent.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any

from django.conf import settings

from chatsite.llm import providers
from memory import context, folding, versions
from memory.models import Conversation, Message, ModelCall, Summary

from .errors import explain
from .models import Turn

PAGE_TURNS = 50


@dataclass(frozen=True, slots=True)
class Mark:
    """Where the model sees a message: the words on its tag and how it is drawn."""

    kind: str  # window, summary, excluded, superseded, sending, queued, lost
    text: str
    version: int | None = None


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
    model: str = ""
    is_demo: bool = False
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class TurnView:
    """A user message and its replies; `entries` holds superseded ones too."""

    id: int
    state: str
    attempt: int
    entries: tuple[Entry, ...]
    # The running reply as far as it was saved; None unless queued or running.
    partial: str | None = None
    reply_seq: int = 0
    position: int = 0
    error: str = ""  # a full sentence for people, or ""
    can_retry: bool = False
    model: str = ""
    is_demo: bool = False


@dataclass(frozen=True, slots=True)
class Divider:
    """The line drawn where one active summary's range ends."""

    summary: Summary
    covered: int  # messages


@dataclass(frozen=True, slots=True)
class TranscriptPane:
    items: tuple[TurnView | Divider, ...]
    total: int
    # Set when earlier turns exist: pass it as `before` to get them.
    earlier: int | None
    folding_note: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """One section of the right pane, in the order of the payload."""

    kind: str  # system, summaries, pinned, window, recalled, newest
    title: str
    tokens: int
    messages: tuple[Message, ...] = ()
    summaries: tuple[Summary, ...] = ()
    text: str = ""

    @property
    def last_seq(self) -> int | None:
        return self.messages[-1].seq if self.messages else None


@dataclass(frozen=True, slots=True)
class Segment:
    """One piece of the token bar. `x` and `width` are permille of the bar."""

    kind: str  # the parts' kinds, then reserve and free
    tokens: int
    x: int
    width: int


@dataclass(frozen=True, slots=True)
class Gauge:
    segments: tuple[Segment, ...]
    used: int
    capacity: int
    reserve: int  # kept free for the reply
    # Folding starts when the window has so many tokens; None = not by tokens.
    window_limit: int | None = None
    # The place of the fold point on the bar, in permille; None = it is not on it.
    fold_x: int | None = None


@dataclass(frozen=True, slots=True)
class ContextPane:
    """The right pane. `reply` is the shown reply's number, None for the next turn."""

    reply: int | None
    parts: tuple[Part, ...]
    gauge: Gauge
    tokens_estimated: int
    accounted: int
    total: int
    counts: dict[str, int] = field(default_factory=dict)  # messages by kind of place
    model: str = ""
    is_demo: bool = False
    call: ModelCall | None = None
    verified: bool | None = None
    replies: tuple[int, ...] = ()  # numbers to choose from, newest first
    wire: Sequence[dict[str, Any]] = ()
    sha256: str = ""
    policy: str = ""
    fold_rule: str = ""
    folding_stopped: bool = False

    @property
    def drift(self) -> str:
        """How far the estimate was from what the provider reported."""
        if self.call is None or not self.call.tokens_input:
            return ""
        reported = self.call.tokens_input
        return f"{(self.call.tokens_estimated - reported) * 100 / reported:+.0f} %"


def transcript(
    conversation: Conversation, *, before: int | None = None, turns: int = PAGE_TURNS
) -> TranscriptPane:
    """The latest `turns` turns, or those before turn id `before`."""
    rows = conversation.turns.select_related("user_message").order_by("-id")
    if before:
        rows = rows.filter(id__lt=before)
    page = list(rows[: turns + 1])
    shown = list(reversed(page[:turns]))
    summaries = versions.active(conversation)
    return TranscriptPane(
        items=tuple(_items(conversation, shown, summaries)),
        total=conversation.messages.count(),
        earlier=shown[0].pk if len(page) > turns else None,
    )


def turn_view(conversation: Conversation, turn_id: int) -> TurnView:
    """One turn as it stands now. Raises Turn.DoesNotExist."""
    turn = conversation.turns.select_related("user_message").get(pk=turn_id)
    views = _views(conversation, [turn], versions.active(conversation))
    return next(views)


def _items(
    conversation: Conversation, turns: list[Turn], summaries: list[Summary]
) -> Iterator[TurnView | Divider]:
    views = list(_views(conversation, turns, summaries))
    for index, view in enumerate(views):
        yield view
        ends = [entry.seq for entry in view.entries] or [view.reply_seq]
        upcoming = views[index + 1].entries[0].seq if index + 1 < len(views) else None
        for summary in summaries:
            after = upcoming is None or summary.last_seq < upcoming
            if ends[0] <= summary.last_seq and after:
                yield Divider(summary, _covered(conversation, summary))


def _covered(conversation: Conversation, summary: Summary) -> int:
    span = (summary.first_seq, summary.last_seq)
    return context.visible(conversation).filter(seq__range=span).count()


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
            attempt=turn.attempt,
            entries=tuple(
                _entry(row, turn, summaries, model) for row in messages[turn.pk]
            ),
            partial=None if finished else turn.text,
            reply_seq=turn.reply_seq,
            position=0 if finished else waiting.index(turn.pk),
            error=explain(turn.error) if turn.error else "",
            can_retry=turn.pk == last and turn.state in Turn.RETRYABLE,
            model=providers.label(model),
            is_demo=providers.is_demo(model),
        )


def _messages_of(
    conversation: Conversation, turns: list[Turn]
) -> dict[int, list[Message]]:
    """The messages of each turn: from its user message to the next turn's."""
    if not turns:
        return {}
    starts = [(turn.user_message.seq, turn.pk) for turn in turns]
    following = conversation.turns.filter(id__gt=turns[-1].pk).order_by("id")
    end = following.values_list("user_message__seq", flat=True).first()
    rows = conversation.messages.filter(seq__gte=starts[0][0]).order_by("seq")
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
        mark=_mark(row, turn, summaries),
        state=turn.state,
        model=providers.label(model) if is_reply else "",
        is_demo=is_reply and providers.is_demo(model),
        pinned=row.pinned_at is not None,
    )


def _mark(row: Message, turn: Turn, summaries: list[Summary]) -> Mark:
    if row.superseded_at:
        return Mark("superseded", "superseded")
    if row.excluded_at:
        return Mark("excluded", "left out")
    if turn.state == Turn.State.QUEUED:
        return Mark("queued", "queued")
    if turn.state == Turn.State.RUNNING:
        return Mark("sending", "sending")
    for summary in summaries:
        if summary.first_seq <= row.seq <= summary.last_seq:
            text = f"in summary v{summary.version}"
            return Mark("summary", text, summary.version)
    return Mark("window", "in window")


def model_of(conversation: Conversation) -> str:
    return conversation.model or providers.default_model()


def limit_of(model: str) -> int:
    """Tokens that a request may have, so that the reply still fits the window."""
    return max(1, providers.context_window(model) - settings.REPLY_RESERVE)


def next_turn(conversation: Conversation) -> context.Built:
    """What would be sent now: the waiting message's context, or the view so far."""
    model = model_of(conversation)
    waiting = conversation.turns.filter(state__in=Turn.UNFINISHED).order_by("id")
    turn = waiting.select_related("user_message").first()
    newest = turn.user_message if turn else None
    limit = limit_of(model)
    return context.build(conversation, newest=newest, model=model, limit=limit)


def reply_call(conversation: Conversation, seq: int) -> ModelCall | None:
    """The request that reply `seq` came from."""
    calls = conversation.model_calls.filter(
        purpose=ModelCall.Purpose.REPLY, message__seq=seq
    )
    return calls.order_by("-id").first()


def model_view(conversation: Conversation, *, reply: int | None = None) -> ContextPane:
    """The right pane. Raises ModelCall.DoesNotExist for a number that is no reply."""
    call = None
    if reply is not None:
        call = reply_call(conversation, reply)
        if call is None:
            raise ModelCall.DoesNotExist
    built = context.rebuild(call) if call else next_turn(conversation)
    model = call.model if call else model_of(conversation)
    parts = tuple(_parts(conversation, built))
    counts = context.count_places(conversation)
    total = sum(counts.values())
    return ContextPane(
        reply=reply,
        parts=parts,
        gauge=_gauge(conversation, parts, model),
        tokens_estimated=built.tokens,
        accounted=total - counts.get("lost", 0),
        total=total,
        counts=counts,
        model=providers.label(model),
        is_demo=providers.is_demo(model),
        call=call or _latest_call(conversation),
        verified=_verify(call, built) if call else None,
        replies=tuple(_replies(conversation)),
        wire=built.wire,
        sha256=built.sha256,
        policy=conversation.get_policy().preset,
        fold_rule=_fold_rule(conversation),
        folding_stopped=not folding.may_fold(conversation),
    )


def _verify(call: ModelCall, built: context.Built) -> bool | None:
    """None when it can not be told, because a message was deleted since."""
    same = built.sha256 == call.sha256
    return None if not same and context.is_erased(call) else same


def _latest_call(conversation: Conversation) -> ModelCall | None:
    calls = conversation.model_calls.filter(purpose=ModelCall.Purpose.REPLY)
    return calls.exclude(message=None).order_by("-id").first()


def _replies(conversation: Conversation) -> Iterator[int]:
    rows = conversation.messages.filter(role=Message.Role.ASSISTANT)
    return rows.order_by("-seq").values_list("seq", flat=True)[:200].iterator()


AHEAD_OF_WINDOW = ("system", "summaries", "pinned")
TITLES = {
    "system": "System prompt",
    "summaries": "Summaries",
    "pinned": "Pinned",
    "window": "Window",
    "recalled": "Recalled",
    "newest": "Next message",
}


def _parts(conversation: Conversation, built: context.Built) -> Iterator[Part]:
    count_tokens = context.counter(conversation)
    summaries = conversation.summaries.filter(version__in=built.refs["summaries"])
    for section in built.context.sections:
        seqs = [int(message.id) for message in section.messages if message.id]
        rows = conversation.messages.filter(seq__in=seqs).order_by("seq")
        is_text = section.kind in ("system", "summaries")
        yield Part(
            kind=section.kind,
            title=TITLES[section.kind],
            tokens=count_tokens(section.messages),
            messages=() if is_text else tuple(rows),
            summaries=tuple(summaries) if section.kind == "summaries" else (),
            text=str(section.messages[0].content) if is_text else "",
        )


def _gauge(conversation: Conversation, parts: Sequence[Part], model: str) -> Gauge:
    """The bar reaches to the fold point or to what is used, with a little air, not to
    the model's whole window: against 128,000 tokens nothing would be seen. The
    reserve is drawn once it is in sight."""
    used = sum(part.tokens for part in parts)
    window = providers.context_window(model)
    window_limit, fraction = _fold_limits(conversation)
    ahead = sum(part.tokens for part in parts if part.kind in AHEAD_OF_WINDOW)
    limits = [ahead + window_limit] if window_limit else []
    limits += [int(fraction * window)] if fraction else []
    fold_at = min(limits, default=None)
    reserve = min(settings.REPLY_RESERVE, window // 4)
    scale = max(int(used * 1.1), int((fold_at or 0) * 1.15), 1)
    sizes = [(part.kind, part.tokens) for part in parts]
    if scale + reserve >= window:
        scale = max(window, used)
        sizes += [("free", max(0, scale - used - reserve)), ("reserve", reserve)]
    else:
        sizes += [("free", scale - used)]
    return Gauge(
        tuple(_segments(sizes, scale)),
        used,
        window,
        reserve,
        window_limit,
        fold_at * 1000 // scale if fold_at and fold_at <= scale else None,
    )


def _segments(sizes: list[tuple[str, int]], scale: int) -> Iterator[Segment]:
    start = 0
    for kind, tokens in sizes:
        x, end = start * 1000 // scale, min(1000, (start + tokens) * 1000 // scale)
        yield Segment(kind, tokens, x, max(0, end - x))
        start += tokens


def _fold_limits(conversation: Conversation) -> tuple[int | None, float | None]:
    """The smallest triggers that fire alone: on the window's tokens, on the share of
    the model's whole window that the context takes."""
    alone = [
        clause[0] for clause in conversation.get_policy().trigger if len(clause) == 1
    ]
    tokens = [int(value) for kind, value in alone if kind == "tokens"]
    fractions = [value for kind, value in alone if kind == "fraction"]
    return min(tokens, default=None), min(fractions, default=None)


def _fold_rule(conversation: Conversation) -> str:
    """When the window is folded, in words; "" = never."""
    policy = conversation.get_policy()
    clauses = [" and ".join(map(_condition, clause)) for clause in policy.trigger]
    return " or ".join(clauses) if policy.enabled else ""


def _condition(size: tuple[str, int | float]) -> str:
    kind, amount = size
    if kind == "fraction":
        return f"{amount:.0%} of the model's window"
    if kind in ("age", "idle"):
        return f"{amount:,} seconds {'old' if kind == 'age' else 'idle'}"
    return f"{amount:,} {kind}"
