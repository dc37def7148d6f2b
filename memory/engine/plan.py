"""When a compaction or a merge of summaries is due, and which messages it covers."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby

from langchain_core.messages import BaseMessage, HumanMessage

from .compose import SummaryBlock
from .cut_points import find_cut_points
from .policy import Clause, ContextSize, Policy, adaptive_trigger
from .tokens import TokenCounter

Messages = Sequence[BaseMessage]


@dataclass(frozen=True, slots=True)
class Measures:
    """A window in every unit a trigger knows; None where the unit is unknown."""

    tokens: int
    messages: int
    turns: int
    fraction: float | None = None
    age: float | None = None
    idle: float | None = None


@dataclass(frozen=True, slots=True)
class TriggerHit:
    """The condition that set a compaction off: `value` had reached `limit`."""

    kind: str
    value: int | float
    limit: int | float


@dataclass(frozen=True, slots=True)
class Compaction:
    """Summarise `messages` (extending `previous`, if any); `kept` stays verbatim."""

    trigger: TriggerHit
    messages: tuple[BaseMessage, ...]
    kept: tuple[BaseMessage, ...]
    previous: SummaryBlock | None
    level: int
    first_seq: int
    last_seq: int

    @property
    def replaces(self) -> tuple[SummaryBlock, ...]:
        return (self.previous,) if self.previous else ()


@dataclass(frozen=True, slots=True)
class Merge:
    """Replace these adjacent summaries by one, a level up."""

    trigger: TriggerHit
    replaces: tuple[SummaryBlock, ...]
    level: int

    @property
    def first_seq(self) -> int:
        return self.replaces[0].first_seq

    @property
    def last_seq(self) -> int:
        return self.replaces[-1].last_seq


Step = Compaction | Merge


def measure(
    messages: Messages,
    *,
    count_tokens: TokenCounter,
    overhead: int = 0,
    context_window: int | None = None,
    now: datetime | None = None,
    reported: int = 0,
) -> Measures:
    """Measure a window; `overhead` (system prompt, summaries, tools) fills it too.

    `reported`, the size of all this by the provider's count, is believed if larger.

    The overhead counts for `fraction` only: compaction shrinks nothing but the window,
    so with a large system prompt a trigger in tokens would fire at every turn.
    """
    tokens = max(count_tokens(messages), reported - overhead)
    now = now or datetime.now(UTC)

    def seconds_since(messages: Messages) -> float | None:
        times = [message.additional_kwargs.get("created_at") for message in messages]
        return (now - times[0]).total_seconds() if times and times[0] else None

    return Measures(
        tokens=tokens,
        messages=len(messages),
        turns=len(_turn_starts(messages)),
        fraction=(tokens + overhead) / context_window if context_window else None,
        age=seconds_since(messages[:1]),
        idle=seconds_since(messages[-1:]),
    )


def find_trigger(policy: Policy, measures: Measures) -> TriggerHit | None:
    """The first condition of the first clause that holds, or None."""

    def match(clause: Clause) -> TriggerHit | None:
        hits = [
            TriggerHit(kind, value, limit)
            for kind, limit in clause
            if (value := getattr(measures, kind)) is not None and value >= limit
        ]
        return hits[0] if len(hits) == len(clause) else None

    return next(filter(None, map(match, policy.trigger)), None)


def find_next_due(
    policy: Policy, window: Messages, *, now: datetime | None = None
) -> datetime | None:
    """When an age or idle condition comes true without a new message; None = never."""
    now = now or datetime.now(UTC)
    starts = {"age": window[:1], "idle": window[-1:]}
    times = [
        message.additional_kwargs["created_at"] + timedelta(seconds=n)
        for clause in policy.trigger
        for kind, n in clause
        for message in starts.get(kind, ())
        if message.additional_kwargs.get("created_at")
    ]
    return min((time for time in times if time > now), default=None)


def adapt(policy: Policy, measures: Measures, blocks: Sequence[SummaryBlock]) -> Policy:
    """An adaptive policy with the trigger that is cheapest for these turns."""
    if not policy.adaptive:
        return policy
    limit = adaptive_trigger(
        measures.tokens / max(measures.turns, 1),
        sum(block.tokens for block in blocks) or policy.max_summary_tokens,
        int(policy.keep[1]),
    )
    trigger = tuple(
        tuple((kind, limit if kind == "tokens" else n) for kind, n in clause)
        for clause in policy.trigger
    )
    return policy.model_copy(update={"trigger": trigger})


def find_cutoff(
    messages: Messages,
    keep: ContextSize,
    *,
    count_tokens: TokenCounter,
    context_window: int | None = None,
) -> int:
    """Index of the first message to keep; 0 = there is nothing to compact.

    Counted in messages or turns at least `keep` stays; in tokens the most whole turns
    that fit. The newest turn always stays.
    """
    points = find_cut_points(messages)
    kind, amount = keep
    if kind in ("messages", "turns"):
        latest = len(messages) - int(amount)
        if kind == "turns":
            starts = _turn_starts(messages)
            latest = starts[-int(amount)] if amount <= len(starts) else 0
        return max((point for point in points if point <= latest), default=0)
    if kind == "fraction":
        # Without a known window the smallest possible context is the safe one.
        amount = max(1, int(amount * (context_window or 0)))
    return _cut_to(messages, points, int(amount), count_tokens)


def plan_compaction(
    policy: Policy,
    window: Messages,
    blocks: Sequence[SummaryBlock] = (),
    *,
    count_tokens: TokenCounter,
    overhead: int = 0,
    context_window: int | None = None,
    now: datetime | None = None,
    reported: int = 0,
    force: bool = False,
    room: int | None = None,
    is_waiting: bool = False,
) -> Compaction | None:
    """The compaction that is due, or None. `force` compacts without waiting for the
    trigger.

    `room`: what the window may have in tokens, whatever the policy says. `is_waiting`:
    a message behind the window waits for its reply, so all of the window may go.
    """
    if not policy.enabled or not window:
        return None
    context_window = policy.context_window or context_window
    measures = measure(
        window,
        count_tokens=count_tokens,
        overhead=overhead,
        context_window=context_window,
        now=now,
        reported=reported,
    )
    if force:
        hit = TriggerHit("manual", measures.tokens, 0)
    elif not (hit := find_trigger(adapt(policy, measures, blocks), measures)):
        if room is None or measures.tokens <= room:
            return None
        hit = TriggerHit("room", measures.tokens, room)
    cutoff = _find_policy_cutoff(policy, window, count_tokens, context_window)
    if room is not None:
        points = find_cut_points(window) + [len(window)] * is_waiting
        # Down to half, so that the next turn is not the next compaction.
        most = room // 2 if hit.kind == "room" else room
        cutoff = max(cutoff, _cut_to(window, points, most, count_tokens))
    if force and not cutoff:
        cutoff = find_cutoff(window, ("turns", 1), count_tokens=count_tokens)
    is_urgent = force or hit.kind == "room"
    too_few = not is_urgent and len(_turn_starts(window[:cutoff])) < policy.batch
    if not cutoff or too_few:
        return None
    return _compact_at(cutoff, hit, policy, window, blocks)


def plan_compaction_through(
    policy: Policy,
    window: Messages,
    blocks: Sequence[SummaryBlock],
    seq: int,
    *,
    count_tokens: TokenCounter,
) -> Compaction | None:
    """The compaction a person asks for: to the end of the turn of message `seq`.

    None where that would leave no turn in the window.
    """
    points = find_cut_points(window)
    cutoff = next((point for point in points if int(window[point].id or 0) > seq), 0)
    if not cutoff:
        return None
    hit = TriggerHit("manual", count_tokens(window), 0)
    return _compact_at(cutoff, hit, policy, window, blocks)


def plan_merge(
    policy: Policy, blocks: Sequence[SummaryBlock], *, most: int | None = None
) -> Merge | None:
    """The merge that is due once all summaries together exceed their budget, or None.

    Like carrying in a counter: `fan_in` neighbours of one level become one of the next,
    the lowest level first. So a fact is rewritten O(log n) times even by a summariser
    that shortens nothing; then the summaries take more than their budget, but no more
    than `fan_in` of each level. Over `most` tokens all of them become one.
    """
    total = sum(block.tokens for block in blocks)
    if policy.strategy != "layered" or not policy.enabled:
        return None
    if total <= policy.summary_budget:
        return None
    runs = [tuple(run) for _, run in groupby(blocks, key=lambda block: block.level)]
    full = [run[: policy.fan_in] for run in runs if len(run) >= policy.fan_in]
    merged = min(full, key=lambda run: run[0].level, default=())
    if not merged and most is not None and total > most and len(blocks) > 1:
        merged = tuple(blocks)
    if not merged:
        return None
    hit = TriggerHit("summary_tokens", total, policy.summary_budget)
    return Merge(hit, merged, 1 + max(block.level for block in merged))


def _compact_at(
    cutoff: int,
    hit: TriggerHit,
    policy: Policy,
    window: Messages,
    blocks: Sequence[SummaryBlock],
) -> Compaction:
    newest = blocks[-1] if blocks else None
    previous = None if policy.strategy == "layered" else newest
    first_seq = newest.last_seq + 1 if newest else 1
    kept = tuple(window[cutoff:])
    return Compaction(
        trigger=hit,
        messages=tuple(window[:cutoff]),
        kept=kept,
        previous=previous,
        level=previous.level if previous else 0,
        # Excluded messages have no place in the window, but in the ranges, which tile.
        first_seq=previous.first_seq if previous else first_seq,
        last_seq=int(kept[0].id or 0) - 1 if kept else int(window[-1].id or 0),
    )


def _turn_starts(messages: Messages) -> list[int]:
    return [i for i, each in enumerate(messages) if isinstance(each, HumanMessage)]


def _cut_to(
    messages: Messages, points: Sequence[int], budget: int, count_tokens: TokenCounter
) -> int:
    """The point from which on the messages have no more than `budget` tokens; 0 where
    all of them fit, or there is no point."""
    if not points or count_tokens(messages) <= budget:
        return 0
    return _earliest_fitting(messages, points, budget, count_tokens)


def _find_policy_cutoff(
    policy: Policy,
    window: Messages,
    count_tokens: TokenCounter,
    context_window: int | None,
) -> int:
    """With `fold_least` the index after the first turns that have so many tokens and
    leave no more than `keep`; 0 = there are not so many before the newest turn."""
    if not policy.fold_least:
        return find_cutoff(
            window,
            policy.keep,
            count_tokens=count_tokens,
            context_window=context_window,
        )
    points = find_cut_points(window)
    enough = bisect_left(
        points, policy.fold_least, key=lambda n: count_tokens(window[:n])
    )
    if enough == len(points):
        return 0
    return _earliest_fitting(window, points[enough:], int(policy.keep[1]), count_tokens)


def _earliest_fitting(
    messages: Messages, points: Sequence[int], budget: int, count_tokens: TokenCounter
) -> int:
    # A later start never counts more, so a binary search finds the earliest that fits.
    fits = bisect_left(
        points, True, key=lambda point: count_tokens(messages[point:]) <= budget
    )
    return points[min(fits, len(points) - 1)]
