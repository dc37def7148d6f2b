"""The templates and statements of a page whose parts are rendered."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from bench.long_conversation import make
from chatsite.live import fragments
from memory import transcript

from ..scenes import url

# Templates and statements, at most.
BOUNDS = {
    # With all extras; diagrams have a template of their own.
    "split page": (39, 24),
    "home": (18, 8),
    "right pane": (11, 12),
    "sync of a socket": (37, 10),
    "a turn for its tab": (1, 6),
}


@pytest.fixture
def conversation(alice):
    for number in range(49):
        transcript.create_conversation(alice, title=f"Conversation {number}")
    return make(alice, 100)


def test_a_page_is_few_templates_and_statements(client, conversation, rendered):
    last = conversation.turns.last().pk
    acts = {
        "split page": lambda: client.get(url("detail", conversation)),
        "home": lambda: client.get("/"),
        "right pane": lambda: client.get(url("context", conversation)),
        "sync of a socket": lambda: list(fragments.LivePage().sync(conversation)),
        "a turn for its tab": lambda: fragments.LivePage().draw_turn(
            conversation.pk, last, ""
        ),
    }
    for name, act in acts.items():
        act()
        rendered.clear()
        with CaptureQueriesContext(connection) as queries:
            act()
        templates, statements = BOUNDS[name]
        assert rendered.total() <= templates, (name, rendered.most_common())
        assert len(queries) <= statements, (name, [row["sql"] for row in queries])
