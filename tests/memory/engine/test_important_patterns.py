import time

import pytest

from memory.engine.exceptions import PolicyError
from memory.engine.important_patterns import PatternSearch, parse_pattern
from tests.patience import within


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
def test_pattern_finds_important_text(pattern, text):
    assert PatternSearch([parse_pattern(pattern)]).has_match(text) is True


def test_pattern_is_found_at_any_position():
    for place in range(0, 900, 7):
        assert PatternSearch(["needle"]).has_match("x" * place + "needle" + "x" * 50)


def test_documents_are_not_searched():
    assert PatternSearch(["needle"]).has_match("needle " * 1000) is False
    assert PatternSearch([]).has_match("needle") is False


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
def test_slow_patterns_are_rejected(pattern):
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
def test_accepted_pattern_is_quick_without_a_match(pattern, text):
    with within(1, time.thread_time):
        assert PatternSearch([parse_pattern(pattern)]).has_match(text) is False


def test_search_of_all_texts_has_a_time_limit():
    patterns = [parse_pattern(f"[ab]*[ab]{{0,4}}{letter}") for letter in "CDEFGHIJ"]
    search = PatternSearch(patterns, seconds=0.3)
    with within(0.6, time.thread_time):
        found = [search.has_match("ab" * 1990) for _ in range(50)]
    # A text that there was no time for differs from one without any of the patterns.
    assert found[-1] is None


def test_slowest_accepted_pattern_releases_the_gil_soon():
    search = PatternSearch([parse_pattern("[ab]*[ab]{0,4}C")], seconds=60)
    with within(0.1, time.thread_time):
        assert search.has_match("ab" * 100) is False
