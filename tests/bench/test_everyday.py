"""The 800 messages, and what is found in the half that the patterns are tuned on."""

from collections import Counter

import pytest

from bench.memory.everyday import FINDERS, UNSEEN, change, score, take_half, take_rows
from bench.memory.rule_sentences import HALVES


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", FINDERS)
def test_the_halves_are_alike_and_share_nothing(name, language):
    tuned, kept = (take_half(name, half, language) for half in HALVES)
    assert not {each.text for each in tuned} & {each.text for each in kept}
    for half in (tuned, kept):
        assert Counter(bool(each.rule) for each in half) == {True: 50, False: 50}
        assert len({each.register for each in half}) == 10


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", FINDERS)
def test_rules_and_facts_are_found_in_everyday_words(name, language):
    rows = take_half(name, "tuned", language)
    said, changed = score(name, rows), score(name, [*change(rows)])
    assert said.recall >= 0.9
    assert changed.recall >= 0.85
    assert min(said.precision, changed.precision) >= 0.95


def test_rules_are_found_in_chinese_that_no_pattern_was_tuned_on():
    rows = take_rows("rules", UNSEEN, "zh")
    assert Counter(bool(each.rule) for each in rows) == {True: 60, False: 60}
    found = score("rules", rows)
    assert found.recall >= 0.75
    assert found.precision >= 0.93
