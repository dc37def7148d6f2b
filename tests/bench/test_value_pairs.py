"""Pairs of values that change, of the half that the code is tuned on."""

import pytest

from bench.memory.rule_sentences import HALVES
from bench.memory.value_pairs import FILES, read_pairs, score, take_half


@pytest.mark.parametrize(
    ("name", "changed"),
    [("value_pairs", 100), ("look_alikes", 30), ("everyday_pairs", 100)],
)
def test_the_halves_share_nothing(name, changed):
    tuned, kept = (take_half(half, name) for half in HALVES)
    assert not {*tuned} & {*kept}
    assert {*tuned} | {*kept} == {*read_pairs(name)}
    assert sum(each.has_changed for each in kept) == changed


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", FILES)
def test_the_newest_value_is_marked(name, language):
    pairs = [each for each in take_half("tuned", name) if each.language == language]
    share, wrong = score(pairs)
    assert share >= 0.9
    assert wrong <= (name == "look_alikes")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_two_things_are_rarely_taken_for_one(language):
    pairs = [each for half in HALVES for each in take_half(half, "everyday_pairs")]
    share, wrong = score([each for each in pairs if each.language == language])
    assert share >= 0.85
    assert wrong <= 2
