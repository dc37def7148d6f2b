"""Plans of compactions and merges: the messages that each covers, once it is due."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Any

from langchain_core.messages import BaseMessage

from .compose import SummaryBlock
from .cut_points import find_cut_points, find_turn_starts
from .policy import ContextSize, Policy
from .tokens import TokenCounter
from .triggers import Measures, TriggerHit, find_due, measure_window

Messages = Sequence[BaseMessage]
# More digits than the number of a message has, and few enough to parse.
MAX_DIGITS = 18


@dataclass(frozen=True, slots=True)
class Compaction:
    """A step that summarises `messages`; `kept` stays verbatim.

    `previous`, if any, is extended. `is_trim`: the messages only leave the window,
    nothing is summarised.
    """

    trigger: TriggerHit
    messages: tuple[BaseMessage, ...]
    kept: tuple[BaseMessage, ...]
    previous: SummaryBlock | None
    level: int
    first_seq: int
    last_seq: int
    is_trim: bool = False

    @property
    def replaces(self) -> tuple[SummaryBlock, ...]:
        return (self.previous,) if self.previous else ()


@dataclass(frozen=True, slots=True)
class Merge:
    """A step that replaces adjacent summaries by one, a level up."""

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


def find_cutoff(
    messages: Messages,
    keep: ContextSize,
    *,
    count_tokens: TokenCounter,
    context_window: int | None = None,
    rounds: bool = False,
) -> int:
    """Return the index of the first message to keep; 0 = there is nothing to compact.

    Counted in messages or turns at least `keep` stays; in tokens the most whole turns
    that fit. The newest turn always stays; with `rounds` its newest round of tools.
    """
    points = find_cut_points(messages, rounds=rounds)
    kind, amount = keep
    if kind in ("messages", "turns"):
        latest = len(messages) - int(amount)
        if kind == "turns":
            starts = find_turn_starts(messages)
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
    context_window: int | None = None,
    force: bool = False,
    room: int | None = None,
    is_waiting: bool = False,
    rounds: bool = False,
    **measured: Any,
) -> Compaction | None:
    """Return the compaction that is due, or None.

    `force` compacts without waiting for the trigger; `measured` are other arguments of
    measure_window(). `room`: the tokens of the window, whatever the policy says.
    `is_waiting`: a message behind the window waits for its reply, so the whole window
    may leave. `rounds`: the newest turn may be cut after a round of tools.
    """
    if not policy.enabled or not window:
        return None
    context_window = policy.context_window or context_window
    measures = measure_window(
        window,
        count_tokens=count_tokens,
        context_window=context_window,
        policy=policy,
        **measured,
    )
    hit = TriggerHit("manual", measures.tokens, 0) if force else None
    hit = hit or find_due(policy, measures, blocks, room)
    if hit is None:
        return None
    points = find_cut_points(window, rounds=rounds)
    if policy.fold_least:
        cutoff = _find_fold(policy, window, points, count_tokens)
    else:
        cutoff = find_cutoff(
            window,
            policy.keep,
            count_tokens=count_tokens,
            context_window=context_window,
            rounds=rounds,
        )
    if room is not None:
        ends = [*points, len(window)] if is_waiting else points
        # Down to half, so that the next turn is not the next compaction.
        most = room // 2 if hit.kind == "room" else room
        cutoff = max(cutoff, _cut_to(window, ends, most, count_tokens))
    if force and not cutoff:
        cutoff = max(points, default=0)
    if not cutoff or not _is_worth(cutoff, hit, policy, measures, window, rounds):
        return None
    is_trim = policy.strategy == "window"
    return _compact_at(cutoff, hit, policy, window, blocks, is_trim=is_trim)


def _is_worth(
    cutoff: int,
    hit: TriggerHit,
    policy: Policy,
    measures: Measures,
    window: Messages,
    rounds: bool,
) -> bool:
    """Return whether the messages that would leave are worth a compaction now."""
    if hit.kind == "important" and cutoff <= measures.important_at[0]:
        # All of them stay within `keep`. Otherwise the same few messages would trigger
        # a compaction after every turn.
        return False
    starts = find_turn_starts(window)
    is_inside = rounds and cutoff > max(starts, default=0)
    is_urgent = hit.kind in ("manual", "room") or is_inside
    return is_urgent or bisect_left(starts, cutoff) >= policy.batch


def plan_compaction_through(
    policy: Policy,
    window: Messages,
    blocks: Sequence[SummaryBlock],
    seq: int,
    *,
    count_tokens: TokenCounter,
) -> Compaction | None:
    """Return the compaction that a user asks for: to the end of message `seq`'s turn.

    It writes a summary whatever the policy's strategy is. None if no turn would be left
    in the window.
    """
    points = find_cut_points(window)
    numbers = number_window(window, blocks[-1].last_seq if blocks else 0)
    cutoff = next((point for point in points if numbers[point] > seq), 0)
    if not cutoff:
        return None
    hit = TriggerHit("manual", count_tokens(window), 0)
    return _compact_at(cutoff, hit, policy, window, blocks)


def plan_merge(
    policy: Policy, blocks: Sequence[SummaryBlock], *, most: int | None = None
) -> Merge | None:
    """Return the merge that is due once all summaries exceed their budget, or None.

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
    # Trimmed messages can't be merged, nor can the summaries on either side of them.
    apart = [run for run in _find_runs(blocks, "is_trimmed") if not run[0].is_trimmed]
    # Nor are a user's own words merged, as long as there is room for them.
    parts = [run for part in apart for run in _find_runs(part, "by_hand")]
    by_model = [run for run in parts if not run[0].by_hand]
    runs = [run for part in by_model for run in _find_runs(part, "level")]
    full = [run[: policy.fan_in] for run in runs if len(run) >= policy.fan_in]
    merged = min(full, key=lambda run: run[0].level, default=())
    if not merged and most is not None and total > most:
        longest = max(by_model, key=len, default=())
        merged = longest if len(longest) > 1 else max(apart, key=len)
    if len(merged) < 2:
        return None
    hit = TriggerHit("summary_tokens", total, policy.summary_budget)
    return Merge(hit, merged, 1 + max(block.level for block in merged))


def _find_runs(
    blocks: Sequence[SummaryBlock], name: str
) -> list[tuple[SummaryBlock, ...]]:
    """Return the runs of neighbours with equal values of this attribute."""
    return [tuple(run) for _, run in groupby(blocks, key=attrgetter(name))]


def _compact_at(
    cutoff: int,
    hit: TriggerHit,
    policy: Policy,
    window: Messages,
    blocks: Sequence[SummaryBlock],
    *,
    is_trim: bool = False,
) -> Compaction:
    newest = blocks[-1] if blocks else None
    # A summary must not extend a block of messages that no summariser has read.
    is_alike = newest is not None and newest.is_trimmed == is_trim
    extends = is_alike and policy.strategy != "layered"
    previous = newest if extends else None
    first_seq = newest.last_seq + 1 if newest else 1
    numbers = number_window(window, first_seq - 1)
    return Compaction(
        trigger=hit,
        messages=tuple(window[:cutoff]),
        kept=tuple(window[cutoff:]),
        previous=previous,
        level=previous.level if previous else 0,
        # Excluded messages are not in the window, but in the ranges, which tile.
        first_seq=previous.first_seq if previous else first_seq,
        last_seq=numbers[cutoff] - 1 if cutoff < len(window) else numbers[-1],
        is_trim=is_trim,
    )


def number_window(messages: Messages, after: int = 0) -> list[int]:
    """Return the number of each message, from `after` + 1 on.

    It is the id where all ids are rising numbers, as in a transcript; else the
    position, whatever the ids are.
    """
    ids = [message.id or "" for message in messages]
    if all(id_.isdecimal() and len(id_) < MAX_DIGITS for id_ in ids):
        numbers = [after, *map(int, ids)]
        if all(a < b for a, b in pairwise(numbers)):
            return numbers[1:]
    return list(range(after + 1, after + 1 + len(ids)))


def _cut_to(
    messages: Messages, points: Sequence[int], budget: int, count_tokens: TokenCounter
) -> int:
    """Return the first point from which on the messages have at most `budget` tokens.

    0 if all of them fit, or if there is no point.
    """
    if not points or count_tokens(messages) <= budget:
        return 0
    return _earliest_fitting(messages, points, budget, count_tokens)


def _find_fold(
    policy: Policy, window: Messages, points: Sequence[int], count_tokens: TokenCounter
) -> int:
    """Return the index after the first turns that have `fold_least` tokens.

    No more than `keep` is left; 0 = there are not so many before the newest turn.
    """
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
