import pytest


@pytest.fixture(autouse=True)
def _hurry(monkeypatch):
    """Remove the pauses between the tries of a summariser's request."""
    monkeypatch.setattr("memory.agents.summarizers.PAUSE", 0.0)
