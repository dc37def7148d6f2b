"""Verdicts on policies: chance alone earns no tick."""

import random

from chatsite.contrib.lab.experiments.samples.verdicts import (
    FEWEST,
    Spread,
    average_replays,
    judge_policy,
)

SIZES = (FEWEST, 10, 30)


def replay(rng, sizes, noise):
    return [size + rng.gauss(0, noise * size) for size in sizes]


def is_better(seed, count, *, gain=0.0, noise=0.1):
    """Return whether a policy that saves this share is ticked, where each replay of the
    same policy differs by chance.
    """
    rng = random.Random(seed)
    sizes = [rng.uniform(500, 5_000) for _ in range(count)]
    first, second = (replay(rng, sizes, noise) for _ in range(2))
    tried = replay(rng, [size * (1 - gain) for size in sizes], noise)
    return judge_policy(first, second, tried, -1).is_better


def test_chance_alone_earns_no_tick():
    ticks = [is_better(n, count) for count in SIZES for n in range(1_000)]
    assert sum(ticks) <= len(ticks) / 1_000


def test_a_gain_beyond_chance_does():
    for count in SIZES:
        assert sum(is_better(n, count, gain=0.6) for n in range(100)) > 95


def test_a_gain_within_chance_does_not():
    assert sum(is_better(n, 10, gain=0.05) for n in range(500)) <= 5


def test_few_conversations_show_nothing():
    same = [100.0] * (FEWEST - 1)
    found = judge_policy(same, same, [10.0] * (FEWEST - 1), -1)
    assert (found.change, found.is_better) == (-90.0, False)


def test_constant_results_need_the_minimum_sample():
    same = [100.0] * FEWEST
    assert judge_policy(same, same, [99.0] * FEWEST, -1).is_better
    assert not judge_policy(same, same, [101.0] * FEWEST, -1).is_better
    assert judge_policy(same, same, [101.0] * FEWEST, 1).is_better
    assert not judge_policy(same, same, [99.0] * FEWEST, 0).is_better
    assert not judge_policy(same, same, same, -1).is_better


def test_single_outlier_is_not_enough():
    """The mean gain is large, and comes from one conversation."""
    same = [100.0] * 10
    assert not judge_policy(same, same, [*[100.0] * 9, 1.0], -1).is_better


def test_the_baseline_is_the_mean_of_both_and_says_how_far_they_differ():
    base, chance = average_replays([90, 100], [110, 100])
    assert (base.mean, chance) == (100, 10)


def test_a_spread_is_where_the_middle_half_lies():
    assert Spread.of_values([1, 2, 3, 4, 100]) == Spread(22, 2, 4)
    assert Spread.of_values([7]) == Spread(7, 7, 7)
    assert Spread.of_values([]) == Spread(0, 0, 0)
