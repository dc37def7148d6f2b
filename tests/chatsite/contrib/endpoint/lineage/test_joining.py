"""Two conversations joined by hand, and apart again."""

import pytest
from django.urls import reverse

from chatsite.contrib.endpoint import keys
from chatsite.contrib.endpoint.models import ClientConversation
from memory.models import Conversation
from tests.chatsite.scenes import HTMX, page_of, signed_in, url, violations

from ..asgi_client import send
from .test_why import BACK, FERRY, TALK, replies, says, why

pytestmark = pytest.mark.django_db(transaction=True)
TRAIN = "Which train from Osaka reaches the harbour in time?"


@pytest.fixture
def key(alice, upstream):
    return keys.create_api_key(alice, "Open WebUI")[1]


@pytest.fixture
def pair(key):
    """Two conversations of one client."""
    send(key, TALK[0])
    send(key, says(TRAIN))
    return [*Conversation.objects.order_by("pk")]


def post(client, name, conversation, **values):
    return client.post(reverse(f"endpoint-{name}", args=[conversation.uuid]), values)


def families():
    rows = ClientConversation.objects.order_by("pk")
    return [*rows.values_list("family", flat=True)]


def what_is_kept(client, pair):
    """Return what the site finds, exports and shares of both."""
    from chatsite.features.sharing import services

    found = client.get("/", {"q": "harbour"}, headers=HTMX).content.decode()
    assert str(pair[1].uuid) in found
    assert str(pair[0].uuid) not in found
    kept = []
    for each in pair:
        share = services.create_share(each, with_view=True)
        shared = client.get(reverse("shared-page", args=[share.token]))
        assert b"/why/" not in shared.content
        exported = client.get(url("export-json", each)).json()
        kept.append((exported["messages"], shared.content.count(b"<article")))
    return kept


def test_joined_conversations_link_to_each_other_until_separated(client, pair):
    first, second = pair
    before, apart = what_is_kept(client, pair), families()
    answer = post(client, "join", second, earlier=first.uuid)
    assert answer.status_code == 302
    assert families() == [first.uuid] * 2
    assert "Continued in" in page_of(client, first)
    assert "Continues <a" in page_of(client, second)
    assert "this continues it" in why(client, second)
    assert violations() == []
    assert what_is_kept(client, pair) == before
    assert post(client, "separate", second).status_code == 302
    assert post(client, "separate", second).status_code == 302
    assert families() == apart
    assert "Continues <a" not in page_of(client, second)
    assert what_is_kept(client, pair) == before
    assert violations() == []
    joined = second.changes.filter(action__in=("join", "separate"))
    assert joined.count() == 2


def test_request_that_fits_both_joined_conversations_continues_them(client, key):
    for beginning in (FERRY, TRAIN):
        send(key, says(beginning))
        send(key, says(beginning), replies(beginning), says(BACK))
    first, second = Conversation.objects.order_by("pk")
    cut = [says(BACK), replies(BACK), says("Thanks")]
    assert send(key, *cut)["x-windowpane-lineage"] == "new"
    Conversation.objects.order_by("-pk").first().delete()
    post(client, "join", second, earlier=first.uuid)
    assert send(key, *cut)["x-windowpane-lineage"] == "client-compacted"
    assert violations() == []


def test_a_joined_family_keeps_its_branches(client, key, pair):
    first, second = pair
    said = [says(TRAIN), replies(TRAIN)]
    send(key, *said, says("One"))
    post(client, "join", second, earlier=first.uuid)
    send(key, *said, says("Another"))
    assert families() == [first.uuid] * 3
    post(client, "separate", second)
    assert families() == [first.uuid, second.uuid, second.uuid]


def test_joining_needs_two_client_conversations_of_the_owner(
    bob, client, pair, conversation
):
    first, second = pair
    _, key = keys.create_api_key(bob, "llm")
    send(key, TALK[0])
    foreign = Conversation.objects.get(owner=bob)
    for earlier in (foreign.uuid, conversation.uuid, second.uuid, "x", ""):
        answer = post(client, "join", second, earlier=earlier)
        assert answer.status_code == 422
        assert 'role="alert"' in answer.content.decode()
    assert post(signed_in(bob), "join", second, earlier=foreign.uuid).status_code == 404
    post(client, "join", second, earlier=first.uuid)
    for later, earlier in ((first, second), (second, first)):
        assert post(client, "join", later, earlier=earlier.uuid).status_code == 422
    assert post(client, "join", conversation, earlier=first.uuid).status_code == 404
    assert post(client, "separate", conversation).status_code == 404


def test_erasing_a_joined_conversation_keeps_the_other(client, pair):
    first, second = pair
    post(client, "join", second, earlier=first.uuid)
    first.delete()
    assert "Continues <a" not in page_of(client, second)
    assert "Undo the joining" not in why(client, second)
    assert violations() == []
