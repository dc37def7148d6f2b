"""Later facts, and the earlier ones that they replace."""

import pytest

from memory.engine.facts.topics import find_contradicted

KNOWN = [
    "I live in Bern",
    "I'm a vegetarian",
    "I have a dog",
    "I'm 40",
    "My favourite colour is teal",
    "我住在上海",
    "我最喜欢的颜色是蓝色",
]


@pytest.mark.parametrize(
    ("fact", "replaced"),
    [
        ("I live in Zurich", [0, 5]),
        ("I moved to Oslo last year", [0, 5]),
        ("我搬到了北京", [0, 5]),
        ("I'm vegan", [1]),
        ("我吃素", [1]),
        ("I'm 41", [3]),
        ("My favourite colour is red", [4]),
        ("My favourite composer is Ravel", []),
        ("我最喜欢的颜色是红色", [6]),
        ("I have a cat", []),
        ("I live alone with a parrot", []),
        ("I live in Bern", [5]),
        ("", []),
    ],
)
def test_later_fact_replaces_earlier_ones_of_its_topic(fact, replaced):
    assert find_contradicted(fact, KNOWN) == replaced
