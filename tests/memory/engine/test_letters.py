"""Letters that upper and lower case confuse, in the words of the facts."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.engine.summaries.facts import (
    find_facts,
    find_said,
    find_unsupported,
    not_carried_over,
)

DAYS = [date(2026, 3, 1)]
# For each letter of the alphabet everything that case compaction takes for it.
TWINS = {
    letter: [
        char
        for char in map(chr, range(0x2FFF))
        if letter in char.lower() + char.upper().lower() + char.casefold()
    ]
    for letter in "abcdefghijklmnopqrstuvwxyz"
}
WORDS = (
    *("million", "thousand", "k", "bn", "september", "sept.", "may", "st", "th"),
    *("pm", "am", "of", "seventeen", "dozen", "january", "5 march 2026", "3,000"),
)
DIGITS = st.sampled_from(
    ["5", "12", "2026", "٥", "５", "0", "1,200", "3.14", "99999999"]
)


@st.composite
def odd_words(draw):
    word = draw(st.sampled_from(WORDS))
    return "".join(draw(st.sampled_from(TWINS.get(char, [char]))) for char in word)


TEXTS = st.lists(
    st.one_of(odd_words(), DIGITS, st.sampled_from(["-", "年", "月", "日", "T", ". "])),
    max_size=6,
).map(" ".join)


@pytest.mark.parametrize(
    ("summary", "source"),
    [
        ("It costs 5.", "It costs 5 mıllıon euro"),
        ("It costs 5.", "IT COSTS 5 MİLLİON"),
        ("It costs 5.", "It costs 5 \u212a"),
        ("It was on 5 ſeptember.", "nothing"),
        ("It was in ſeptember 2026.", "nothing"),
    ],
)
def test_lookalike_letters_are_read(summary, source):
    assert isinstance(find_unsupported(summary, [source], DAYS), list)


def test_scale_in_capitals_is_recognised():
    assert find_unsupported("It costs 5,000,000.", ["IT COSTS 5 MILLION"]) == []
    assert find_unsupported("It costs 5,000,000.", ["It is 5 mètres long"]) == [
        "5,000,000"
    ]


def test_number_before_another_word_is_recognised():
    assert find_unsupported("It costs 5 mıllıon.", ["It costs 5 million"]) == []


@given(TEXTS, TEXTS)
def test_odd_texts_are_read(summary, source):
    facts = find_facts(summary)
    assert isinstance(find_unsupported(summary, [source], DAYS), list)
    assert find_said(facts, [source], DAYS) <= {*facts}
    assert len(list(not_carried_over([summary], [source]))) == 1
