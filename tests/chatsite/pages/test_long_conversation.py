"""A conversation of thousands of messages asks no more of the database than a short."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from bench.long_conversation import make
from chatsite.live import fragments
from chatsite.pages.presenters import context_pane, search, transcript_pane
from memory.search import conversation_search

SIZES = (30, 1_200)


@pytest.fixture
def pair(alice, bob):
    """Return a short and a long form of a conversation, each of another user."""
    return [make(owner, size) for owner, size in zip((alice, bob), SIZES, strict=True)]


def middle_of(conversation):
    ids = list(conversation.turns.order_by("id").values_list("id", flat=True))
    return ids[len(ids) // 2]


ACTS = {
    "split page": lambda client, made: client.get(f"/c/{made.uuid}/"),
    "earlier page": lambda client, made: client.get(
        f"/c/{made.uuid}/messages/", {"before": middle_of(made)}
    ),
    "turns drawn again": lambda client, made: client.get(
        f"/c/{made.uuid}/messages/",
        {"after": middle_of(made) - 3, "before": middle_of(made)},
    ),
    "sync": lambda client, made: list(fragments.LivePage().sync(made)),
    "right pane": lambda client, made: context_pane.model_view(made),
    "find": lambda client, made: search.search_conversation(
        made, "captain harbour minutes"
    ),
    "search": lambda client, made: list(
        conversation_search.find_messages(made.owner, "ferry pier")
    ),
}


@pytest.mark.django_db
def test_number_of_queries_does_not_grow_with_the_messages(client, pair):
    counted = {}
    for made in pair:
        client.force_login(made.owner)
        for name, act in ACTS.items():
            act(client, made)  # what a process remembers is not what is counted
            with CaptureQueriesContext(connection) as queries:
                act(client, made)
            counted.setdefault(name, []).append(len(queries))
    for name, (short, long) in counted.items():
        # A search also looks for pairs of words, where single ones are in 200 messages.
        spare = int(name == "find")
        assert 0 < long <= short + spare, (name, short, long)


@pytest.mark.django_db
def test_a_compaction_is_drawn_once_however_the_pages_are_cut(alice):
    made = make(alice, 400)
    pane = transcript_pane.show_latest_turns(made)
    drawn = list(pane.items)
    while pane.earlier:
        pane = transcript_pane.show_latest_turns(made, before=pane.earlier)
        drawn = [*pane.items, *drawn]
    compactions = [
        item.summary.version
        for item in drawn
        if isinstance(item, transcript_pane.Divider)
    ]
    assert compactions == [1, 2, 3, 4, 5, 6]
    ids = [item.id for item in drawn if isinstance(item, transcript_pane.TurnView)]
    assert ids == sorted(ids)
    assert len(ids) == 200
    seen = [item for item in drawn if isinstance(item, transcript_pane.Divider)]
    assert sum(compaction.covered for compaction in seen) == 380
