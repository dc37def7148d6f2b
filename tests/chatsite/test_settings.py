"""Values of the environment that the site can't run with."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from chatsite.settings import env


def test_it_takes_one_of_the_words(monkeypatch):
    monkeypatch.setenv("LOG_FORMAT", "json")
    assert env.word("LOG_FORMAT", "line", "json") == "json"


def test_it_takes_the_first_word_where_there_is_none(monkeypatch):
    monkeypatch.delenv("LOG_FORMAT", raising=False)
    assert env.word("LOG_FORMAT", "line", "json") == "line"


def test_it_names_the_words_that_it_takes(monkeypatch):
    monkeypatch.setenv("SYSTEM_ROLE", "root")
    expected = "SYSTEM_ROLE is 'root'; use system, developer or user."
    with pytest.raises(ImproperlyConfigured, match=expected):
        env.word("SYSTEM_ROLE", "system", "developer", "user")


def test_it_takes_the_least_number_and_nothing_below(monkeypatch):
    monkeypatch.setenv("TOOL_RESULT_TOKENS", "200")
    assert env.at_least("TOOL_RESULT_TOKENS", 200, default=1_000) == 200
    monkeypatch.setenv("TOOL_RESULT_TOKENS", "199")
    with pytest.raises(ImproperlyConfigured, match="is 199; use 200 or more"):
        env.at_least("TOOL_RESULT_TOKENS", 200, default=1_000)
