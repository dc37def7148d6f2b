"""Which policy is better, over all conversations of a sample: pure functions.

The own policy of each conversation is played twice. By how much the two differ is what
chance does, and a policy is called better only where it gains more than that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, quantiles, stdev

# With fewer conversations nothing is called better.
FEWEST = 5
# Standard errors of the mean gain that have to lie beyond chance.
ERRORS = 2.0


@dataclass(frozen=True, slots=True)
class Spread:
    """One measure over the conversations: its mean, and where the middle half lies."""

    mean: float
    low: float
    high: float

    @classmethod
    def of_values(cls, values: Sequence[float]) -> "Spread":
        if len(values) < 2:
            return cls(*(3 * [values[0] if values else 0.0]))
        low, _middle, high = quantiles(values, n=4, method="inclusive")
        return cls(fmean(values), low, high)


@dataclass(frozen=True, slots=True)
class PolicyVerdict:
    """A policy beside the baseline in one measure. `change` is the mean difference."""

    spread: Spread
    change: float
    is_better: bool


def average_replays(
    first: Sequence[float], second: Sequence[float]
) -> tuple[Spread, float]:
    """The baseline, and how far its two replays lie apart in the mean."""
    both = [fmean(pair) for pair in zip(first, second, strict=True)]
    return Spread.of_values(both), _measure_chance(first, second)


def judge_policy(
    first: Sequence[float],
    second: Sequence[float],
    tried: Sequence[float],
    direction: int,
) -> PolicyVerdict:
    """The values of the same conversations in both replays of the baseline and with the
    policy; `direction` is 1 where more is better, -1 where less is, 0 where neither."""
    changes = [
        value - fmean(pair) for value, *pair in zip(tried, first, second, strict=True)
    ]
    spread = Spread.of_values(tried)
    if len(changes) < FEWEST:
        return PolicyVerdict(spread, fmean(changes) if changes else 0.0, False)
    change, error = fmean(changes), stdev(changes) / sqrt(len(changes))
    gain = direction * change - ERRORS * error
    return PolicyVerdict(spread, change, gain > _measure_chance(first, second))


def _measure_chance(first: Sequence[float], second: Sequence[float]) -> float:
    gaps = [abs(one - other) for one, other in zip(first, second, strict=True)]
    return fmean(gaps) if gaps else 0.0
