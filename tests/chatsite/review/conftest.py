"""A conversation with summaries, and the pages that staff see of it."""

import pytest
from django.urls import reverse

from memory import transcript
from tests.memory.scenes import summarise, talk
from tests.remembered import remembered


@pytest.fixture
def page(reviewer):
    """page("summary_change", pk, **params) -> its text, as the reviewer sees it."""

    def get(name, *args, **params):
        response = reviewer.get(reverse(f"admin:memory_{name}", args=args), params)
        assert response.status_code == 200
        return response.content.decode()

    return get


@pytest.fixture
@remembered
def conversation(alice):
    conversation = transcript.create_conversation(alice, title="Audited")
    talk(conversation, 4)
    return conversation


@pytest.fixture
@remembered
def versions(conversation):
    """v1 over the first two turns, v2 extending it over two more."""
    first = summarise(conversation, 1, 4, text="The first text.")
    second = summarise(conversation, 1, 8, replaces=[first], text="The second text.")
    return first, second
