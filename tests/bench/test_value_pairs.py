"""Pairs of values that change, of the half that the code is tuned on."""

import pytest

from bench.memory.rule_sentences import HALVES
from bench.memory.value_pairs import read_pairs, score, take_half


def test_the_halves_share_nothing():
    tuned, kept = map(take_half, HALVES)
    assert not {*tuned} & {*kept}
    assert {*tuned} | {*kept} == {*read_pairs()}
    assert sum(each.has_changed for each in kept) == 100


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_newest_value_is_marked(language):
    pairs = [each for each in take_half("tuned") if each.language == language]
    share, wrong = score(pairs)
    assert share >= 0.9
    assert wrong == 0
