import time

import pytest

from memory.engine.exceptions import PolicyError
from memory.engine.patterns import find_match, parse_pattern


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(?i)must|never|deadline", "The DEADLINE is Friday"),
        (r"\bORD-\d{4,8}\b", "see ORD-88213, please"),
        ("(call|ring) me .*", "do call me back"),
        ("重要|记住", "请记住这个"),
        (r"\(urgent\)", "this is (urgent)"),
        ("[*+?]{2}", "what?+"),
        ("end$", "x" * 300 + " the end"),
    ],
)
def test_it_finds_what_matters(pattern, text):
    assert find_match((parse_pattern(pattern),), text) == pattern


def test_it_finds_it_wherever_it_stands():
    for place in range(0, 900, 7):
        assert find_match(("needle",), "x" * place + "needle" + "x" * 50)


def test_it_finds_nothing_in_a_document():
    assert find_match(("needle",), "needle " * 1000) is None
    assert find_match((), "needle") is None


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "(a|a)*b",
        "(?:x+x+)+y",
        ".*.*.*=",
        "(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)$",
        r"(.)\1",
        "(?=a)",
        "(?P<n>a)",
        "a{1,100}a{1,100}",
        "a?" * 30,
        "a(",
        "[z-a]",
        "*",
    ],
)
def test_it_refuses_what_could_take_for_ever(pattern):
    with pytest.raises(PolicyError, match="expected"):
        parse_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("a.*b", "a" * 4000),
        ("a?a?a?a?a?a?a?b", "a" * 4000),
        ("(a|b)(a|b).*x", "ab" * 2000),
    ],
)
def test_it_is_quick_even_where_nothing_matches(pattern, text):
    started = time.perf_counter()
    assert find_match((parse_pattern(pattern),), text) is None
    assert time.perf_counter() - started < 1
