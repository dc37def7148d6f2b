"""The benchmark of the database still runs: once, on a few rows."""

import pytest

from bench import long_conversation

pytestmark = pytest.mark.django_db(transaction=True)


def test_long_conversation_runs(monkeypatch, capsys):
    monkeypatch.setattr(long_conversation, "SIZES", (30, 60))
    monkeypatch.setattr(long_conversation, "RUNS", 1)
    long_conversation.report()
    assert " ms" in capsys.readouterr().out
