"""The web on loopback, and what a process connects to."""

import sys

import pytest

from chatsite.contrib.web import limits, sources
from memory import transcript
from tests.chatsite.features.tools.calls import context_of
from tests.fakes.web import origin, serve_web

# Audit hooks can't be taken away, so there is one, which notes while a test wants it.
_noting: list[list] = []


def _note(event, values):
    if event == "socket.connect" and _noting:
        _noting[-1].append(values[1])


sys.addaudithook(_note)


@pytest.fixture
def connected():
    """The addresses that any socket of the process was connected to."""
    _noting.append([])
    yield _noting[-1]
    _noting.pop()


@pytest.fixture(autouse=True)
def web_settings(settings):
    settings.WEB_NETWORKS = []
    settings.WEB_SECONDS = 5.0
    limits.pace.clear()
    # Each test has a turn of the same number.
    sources._given.clear()


@pytest.fixture
def web(settings):
    """Pages that the operator lets models read, and a search engine."""
    with serve_web() as server:
        server.origin = origin(server)
        settings.WEB_NETWORKS = ["127.0.0.1/32"]
        settings.WEB_SEARCH = server.origin
        settings.WEB_PAGES_ENABLED = True
        yield server


@pytest.fixture
def inside():
    """A server of the operator's own network, which no page may lead to."""
    with serve_web("127.0.0.2") as server:
        server.origin = origin(server)
        yield server


@pytest.fixture
def conversation(alice):
    return transcript.create_conversation(alice)


@pytest.fixture
def call(conversation):
    return context_of(conversation, user_id=conversation.owner_id)
