"""Conversations in the admin: their sizes, their compaction, and how they are found."""

from urllib.parse import urlencode

import pytest
from django.urls import reverse

from tests.memory.scenes import plant


def test_it_counts_what_a_conversation_has(page, conversation, versions):
    text = page("conversation_change", conversation.pk)
    assert f"?conversation__id__exact={conversation.pk}" in text
    assert "8 messages" in text
    assert "2 summaries" in text


@pytest.mark.parametrize(
    ("failures", "state", "words"),
    [
        (0, "working", "working"),
        (2, "failing", "failed 2 times, will try again"),
        (3, "stopped", "stopped after 3 failures"),
    ],
)
def test_it_finds_where_compaction_fails(page, conversation, failures, state, words):
    plant(conversation, compaction_failures=failures)
    assert words in page("conversation_changelist", compaction=state)
    others = {"working", "failing", "stopped"} - {state}
    for other in others:
        assert "Audited" not in page("conversation_changelist", compaction=other)


def test_it_is_found_by_its_id_and_owner_only(page, conversation):
    for query in (str(conversation.uuid), conversation.uuid.hex, "ali"):
        assert "Audited" in page("conversation_changelist", q=query)
    for query in ("Audited", "Text", "'; --", "lice"):
        assert ">Audited<" not in page("conversation_changelist", q=query)


@pytest.mark.parametrize("value", ["\0", "x" * 300, "-1", "\ud800", ""])
def test_it_survives_odd_questions(reviewer, conversation, value):
    url = reverse("admin:memory_conversation_changelist")
    for name in ("compaction", "q", "p", "o", "archived_at__isempty", "owner__id"):
        query = urlencode({name: value}, errors="surrogatepass")
        response = reviewer.get(f"{url}?{query}")
        assert response.status_code in (200, 302, 400), name
