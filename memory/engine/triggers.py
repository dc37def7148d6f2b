"""When to fold: a window measured in every unit a trigger knows, and what fires.

Nothing here decides what is folded; plan.py does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from langchain_core.messages import BaseMessage, HumanMessage

from .compose import SummaryBlock
from .policy import Clause, Policy, adaptive_trigger
from .tokens import TokenCounter


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
    """The condition that set a fold off: `value` had reached `limit`."""

    kind: str
    value: int | float
    limit: int | float


def measure(
    messages: Sequence[BaseMessage],
    *,
    count_tokens: TokenCounter,
    overhead: int = 0,
    context_window: int | None = None,
    now: datetime | None = None,
    reported: int = 0,
) -> Measures:
    """Measure a window; `overhead` (system prompt, summaries, tools) fills it too.

    `reported`, the size of all this by the provider's count, is believed if larger.

    The overhead counts for `fraction` only: folding shrinks nothing but the window, so
    with a large system prompt a trigger in tokens would fire at every turn.
    """
    tokens = max(count_tokens(messages), reported - overhead)
    now = now or datetime.now(UTC)
    return Measures(
        tokens=tokens,
        messages=len(messages),
        turns=count_turns(messages),
        fraction=(tokens + overhead) / context_window if context_window else None,
        age=_seconds_since(messages[:1], now),
        idle=_seconds_since(messages[-1:], now),
    )


def find_trigger(policy: Policy, measures: Measures) -> TriggerHit | None:
    """The first condition of the first clause that holds, or None."""
    hits = (_match(clause, measures) for clause in policy.trigger)
    return next((hit for hit in hits if hit), None)


def find_next_due(
    policy: Policy, window: Sequence[BaseMessage], *, now: datetime | None = None
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


def _match(clause: Clause, measures: Measures) -> TriggerHit | None:
    """The first condition of the clause, if all of them hold."""
    hits = [
        TriggerHit(kind, value, limit)
        for kind, limit in clause
        if (value := getattr(measures, kind)) is not None and value >= limit
    ]
    return hits[0] if len(hits) == len(clause) else None


def turn_starts(messages: Sequence[BaseMessage]) -> list[int]:
    return [
        i for i, message in enumerate(messages) if isinstance(message, HumanMessage)
    ]


def count_turns(messages: Sequence[BaseMessage]) -> int:
    return len(turn_starts(messages))


def _seconds_since(messages: Sequence[BaseMessage], now: datetime) -> float | None:
    times = [message.additional_kwargs.get("created_at") for message in messages]
    return (now - times[0]).total_seconds() if times and times[0] else None
