"""A conversation of Alice, and her browser."""

import pytest
from django.test import Client

from chatsite.chat import watcher
from memory import transcript

from .scenes import signed_in, talk_in_turns


@pytest.fixture
def conversation(alice):
    made = transcript.create(alice, title="Trip to Kyoto")
    talk_in_turns(made, "Hello", "What is my budget?")
    return made


@pytest.fixture
def quick_watcher(monkeypatch):
    """Sockets are looked after at four times the pace, as tests wait for it."""
    for name in ("SESSION_SECONDS", "LOOK_SECONDS", "SILENCE_SECONDS"):
        monkeypatch.setattr(watcher, name, getattr(watcher, name) / 4)


@pytest.fixture
def client(alice):
    return signed_in(alice)


@pytest.fixture
def session(alice):
    client = Client()
    client.force_login(alice)
    return client.cookies["sessionid"].value
