"""The triggers of a policy: whether a window is due for a compaction.

Size, age and subject of the window are compared with the limits of the policy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import sqrt
from statistics import mean

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from .compose import SummaryBlock, time_of
from .cut_points import find_newest_question, find_turn_starts
from .important_patterns import PatternSearch
from .policy import ADAPTIVE_MAX, ADAPTIVE_MIN, CACHED_PRICE, Clause, Policy
from .search.terms import measure_term_distance
from .tokens import TokenCounter

Messages = Sequence[BaseMessage]
# Characters of the newest turn and of the window before it that are compared, so that
# the trigger "topic" costs the same however long they are.
TURN_CHARS, EARLIER_CHARS = 4_000, 16_000
# The costs of a compaction beside the messages, which are read once at any distance:
# the tokens of the summariser's prompt, the price of a written token over that of a
# read one, and how often merges rewrite a summary (1 + 1/5 + 1/25 + ...).
REQUEST_TOKENS, WRITTEN_PRICE, MERGED = 300, 5, 1.25
# For the trigger "important", which is checked after every turn.
SEARCH_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Measures:
    """A window in every unit of the triggers; None where the unit is unknown."""

    tokens: int
    messages: int
    turns: int
    fraction: float | None = None
    age: float | None = None
    idle: float | None = None
    topic: float | None = None
    # The indices of the important messages.
    important_at: tuple[int, ...] = ()

    @property
    def important(self) -> int:
        return len(self.important_at)


@dataclass(frozen=True, slots=True)
class TriggerHit:
    """The condition that triggered a compaction: `value` had reached `limit`."""

    kind: str
    value: int | float
    limit: int | float


def measure_window(
    messages: Messages,
    *,
    count_tokens: TokenCounter,
    overhead: int = 0,
    context_window: int | None = None,
    now: datetime | None = None,
    reported: int = 0,
    policy: Policy | None = None,
) -> Measures:
    """Measure a window; `overhead` (system prompt, summaries, tools) fills it too.

    `reported`, the size of all this by the provider's count, is used if larger.

    The overhead counts for `fraction` only: compaction shrinks only the window, so with
    a large system prompt a trigger in tokens would fire at every turn.

    Words are read only for a `policy` that has a trigger for them.
    """
    tokens = max(count_tokens(messages), reported - overhead)
    has_patterns = policy and policy.has_trigger("important")
    search = PatternSearch(policy.important, SEARCH_SECONDS) if has_patterns else None
    now = now or datetime.now(UTC)

    def seconds_since(messages: Messages) -> float | None:
        time = time_of(messages[0]) if messages else None
        return (now - time).total_seconds() if time else None

    return Measures(
        tokens=tokens,
        messages=len(messages),
        turns=len(find_turn_starts(messages)),
        fraction=(tokens + overhead) / context_window if context_window else None,
        age=seconds_since(messages[:1]),
        idle=seconds_since(messages[-1:]),
        topic=measure_topic(messages)
        if policy and policy.has_trigger("topic")
        else None,
        important_at=tuple(
            place for place, each in enumerate(messages) if search.has_match(each.text)
        )
        if search
        else (),
    )


def measure_topic(messages: Messages) -> float | None:
    """Return how far the newest turn is from the messages before it, from 0 to 1.

    That is the share of its words that are not in them. Only what user and model say
    counts, not the results of tools. None: there is nothing before it, or it has too
    few words.
    """
    start = max(find_newest_question(messages), 0)
    earlier = _read_beginning(messages[:start][::-1], EARLIER_CHARS)
    far = (
        measure_term_distance(_read_beginning(messages[start:], TURN_CHARS), earlier)
        if earlier
        else None
    )
    return None if far is None else round(far, 3)


def _read_beginning(messages: Messages, most: int) -> str:
    """Return the first `most` characters that were said in these messages."""
    said, room = [], most
    for message in messages:
        if room > 0 and isinstance(message, (HumanMessage, AIMessage)):
            said.append(message.text[:room])
            room -= len(said[-1])
    return "\n".join(said)


def find_trigger(policy: Policy, measures: Measures) -> TriggerHit | None:
    """Return the first condition of the first clause that holds, or None."""

    def match(clause: Clause) -> TriggerHit | None:
        hits = [
            TriggerHit(kind, value, limit)
            for kind, limit in clause
            if (value := getattr(measures, kind)) is not None and value >= limit
        ]
        return hits[0] if len(hits) == len(clause) else None

    return next(filter(None, map(match, policy.trigger)), None)


def find_due(
    policy: Policy,
    measures: Measures,
    blocks: Sequence[SummaryBlock] = (),
    room: int | None = None,
) -> TriggerHit | None:
    """Return why a window is due: the policy's trigger, or more than `room` tokens."""
    hit = find_trigger(adapt_trigger(policy, measures, blocks), measures)
    if hit is None and room is not None and measures.tokens > room:
        return TriggerHit("room", measures.tokens, room)
    return hit


def find_next_due(
    policy: Policy, window: Messages, *, now: datetime | None = None
) -> datetime | None:
    """Return when an age or idle condition comes true without a message, or None."""
    now = now or datetime.now(UTC)
    starts = {"age": window[:1], "idle": window[-1:]}
    times = [
        time + timedelta(seconds=n)
        for clause in policy.trigger
        for kind, n in clause
        for time in map(time_of, starts.get(kind, ()))
        if time
    ]
    return min((time for time in times if time > now), default=None)


def adapt_trigger(
    policy: Policy, measures: Measures, blocks: Sequence[SummaryBlock]
) -> Policy:
    """Return the policy with the trigger that applies to this window.

    An adaptive one follows the mean length of its turns and of the summaries so far.
    """
    if not policy.adaptive:
        return policy
    sizes = [block.tokens for block in blocks if not block.is_trimmed]
    limit = adaptive_trigger(
        measures.tokens / max(measures.turns, 1),
        mean(sizes) if sizes else policy.max_summary_tokens,
        int(policy.keep[1]),
    )
    trigger = tuple(
        tuple((kind, limit if kind == "tokens" else n) for kind, n in clause)
        for clause in policy.trigger
    )
    return policy.model_copy(update={"trigger": trigger})


def adaptive_trigger(
    turn_tokens: float, summary_tokens: float, keep_tokens: int
) -> int:
    """Return the window size in tokens at which compaction costs least.

    A window that grows by `distance` tokens is sent from the cache at half of them on
    average, so a turn costs CACHED_PRICE / 2 * distance. Every distance / turn_tokens
    turns a compaction writes a summary, and what follows it is sent fresh. The sum is
    least at the square root.
    """
    resent = (1 - CACHED_PRICE) * (summary_tokens + keep_tokens)
    compaction = REQUEST_TOKENS + WRITTEN_PRICE * MERGED * summary_tokens
    distance = sqrt(2 * turn_tokens * (resent + compaction) / CACHED_PRICE)
    return round(min(max(keep_tokens + distance, ADAPTIVE_MIN), ADAPTIVE_MAX))
