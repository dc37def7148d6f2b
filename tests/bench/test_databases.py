"""The benchmark of the database still runs: once, on a few rows."""

import pytest

from bench import conversation_search, long_conversation
from bench.memory import search

pytestmark = pytest.mark.django_db(transaction=True)


def test_it_runs(monkeypatch, capsys):
    monkeypatch.setattr(long_conversation, "SIZES", (30, 60))
    monkeypatch.setattr(long_conversation, "RUNS", 1)
    long_conversation.report()
    assert " ms" in capsys.readouterr().out


def test_the_search_of_a_conversation_is_measured(monkeypatch, capsys):
    """As much is found as in memory, on a made-up set."""
    monkeypatch.delenv("WINDOWPANE_DATA", raising=False)
    monkeypatch.setattr(conversation_search, "SIZES", (30, 60))
    monkeypatch.setattr(conversation_search, "ASKED", 2)
    monkeypatch.setattr(search, "SETS", {})
    conversation_search.report()
    printed = capsys.readouterr().out
    assert "made up" in printed
    assert " 0 not as in memory" in printed
    assert "60 messages" in printed
