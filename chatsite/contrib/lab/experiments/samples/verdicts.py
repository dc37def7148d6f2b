"""Pure functions that decide which policy is better over a sample.

The own policy of each conversation is played twice. The difference between the
two is due to chance, and a policy is called better only if it gains more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, quantiles, stdev

# With fewer conversations, no policy is called better.
FEWEST = 5
# The mean gain must exceed chance by this number of standard errors.
ERRORS = 2.0


@dataclass(frozen=True, slots=True)
class Spread:
    """The mean of a measure, and the range of the middle half of its values."""

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
    """A policy compared with the baseline in one measure.

    `change` is the mean difference.
    """

    spread: Spread
    change: float
    is_better: bool


def average_replays(
    first: Sequence[float], second: Sequence[float]
) -> tuple[Spread, float]:
    """Return the baseline, and the mean difference between its two replays."""
    both = [fmean(pair) for pair in zip(first, second, strict=True)]
    return Spread.of_values(both), _measure_chance(first, second)


def judge_policy(
    first: Sequence[float],
    second: Sequence[float],
    tried: Sequence[float],
    direction: int,
) -> PolicyVerdict:
    """Compare a policy with both replays of the baseline in one measure.

    The values are of the same conversations in the same order. `direction` is 1 if
    more is better, -1 if less is, 0 if neither.
    """
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
