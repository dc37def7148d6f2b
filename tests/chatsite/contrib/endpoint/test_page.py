"""A client's conversation on the pages: what is shown, proved and refused."""

import hashlib

import pytest

from chatsite.contrib.endpoint import conversation_hooks, keys
from chatsite.contrib.endpoint.models import BodyPiece
from chatsite.protocol.errors import CommandError
from chatsite.turns import commands
from chatsite.turns.copying import copies
from memory import actions
from memory.engine.compose import digest_wire
from memory.models import Conversation, ModelCall
from memory.view import rebuilding
from tests.chatsite.scenes import page_of, url, violations

from .asgi_client import send

pytestmark = pytest.mark.django_db(transaction=True)


SYSTEM = {"role": "system", "content": "You are the assistant of a shipping office."}
FIRST = {"role": "user", "content": "When does the ferry to Kyoto leave?"}
REPLY = {"role": "assistant", "content": f"Reply to: {FIRST['content']}"}
SECOND = {"role": "user", "content": "And when does it come back?"}


@pytest.fixture
def key(alice, upstream):
    return keys.create_api_key(alice, "Open WebUI")[1]


@pytest.fixture
def conversation(key):
    send(key, SYSTEM, FIRST)
    send(key, SYSTEM, FIRST, REPLY, SECOND)
    return Conversation.objects.get()


def test_the_hash_of_a_request_covers_the_body(client, conversation, upstream):
    shown = client.get(url("context-json", conversation), {"reply": 4}).json()
    assert "client" in shown["refs"]
    sent = upstream.requests[-1].raw
    assert hashlib.sha256(sent).hexdigest() == shown["sha256"]
    assert digest_wire(shown["messages"]) != shown["sha256"]


def test_the_page_shows_what_was_sent(client, conversation):
    page = page_of(client, conversation)
    assert FIRST["content"] in page
    assert SECOND["content"] in page
    assert "Open WebUI writes this conversation." in page
    shown = client.get(url("context-json", conversation), {"reply": 4}).json()
    assert shown["messages"] == [SYSTEM, FIRST, REPLY, SECOND]
    assert shown["sha256"] == ModelCall.objects.get(message__seq=4).sha256
    # Without a reply: what was sent last, and not what the site would send.
    assert (
        client.get(url("context-json", conversation)).json()["messages"][-1] == SECOND
    )
    pane = client.get(url("context", conversation), {"reply": 4})
    assert SYSTEM["content"] in pane.content.decode()


def test_the_list_names_the_client(client, conversation):
    assert "Open WebUI" in client.get("/").content.decode()


def test_second_message_in_a_row_shows_no_missing_reply(client, key):
    send(key, FIRST, SECOND)
    page = page_of(client, Conversation.objects.get())
    assert SECOND["content"] in page
    assert "No reply" not in page
    assert "turn-end" not in page


def test_a_reply_that_its_client_did_not_read_to_its_end_was_stopped(
    client, conversation
):
    ended = {"state": "stopped", "error": "client_gone"}
    conversation.turns.filter(user_message__seq=3).update(**ended)
    page = page_of(client, conversation)
    assert "<strong>Stopped</strong>" in page
    assert "The client stopped reading" in page
    assert "No reply" not in page


def test_client_conversation_is_read_only_on_the_site(conversation):
    with pytest.raises(CommandError, match="branch it"):
        commands.send_message(conversation, text="Hello", client_id="1")
    turn = conversation.turns.last()
    for act in (commands.retry_turn, commands.regenerate_reply):
        with pytest.raises(CommandError, match="branch it"):
            act(conversation, turn.pk)


def test_a_branch_goes_on_here_with_its_proofs(conversation):
    made = copies.branch_conversation(conversation, 4)
    assert not made.imported_from
    assert made.get_policy().enabled
    calls = ModelCall.objects.filter(conversation=made, message__isnull=False)
    assert all(rebuilding.verify_context(call) for call in calls)
    commands.send_message(made, text="Hello", client_id="1", run=False)
    assert violations() == []


def test_deleted_message_is_removed_from_pieces(key, conversation):
    actions.delete_message(conversation, 1)
    assert FIRST["content"] not in str(list(BodyPiece.objects.values_list("text")))
    call = ModelCall.objects.get(message__seq=4)
    assert not rebuilding.verify_context(call)
    assert rebuilding.is_erased(call)
    assert violations() == []
    send(key, SYSTEM, FIRST, REPLY, SECOND)
    assert Conversation.objects.count() == 2


def test_other_conversations_cost_nothing_more(
    client, alice, django_assert_max_num_queries
):
    from memory import transcript

    own = transcript.create_conversation(alice, title="Own")
    with django_assert_max_num_queries(0):
        from chatsite import plugins

        assert plugins.find_write_refusal(own) == ""
        assert conversation_hooks.find_sent_last(own) is None


def test_single_calls_are_one_line_below_the_list_until_they_go_on(client, key):
    send(key, SYSTEM, FIRST)
    page = client.get("/").content.decode()
    assert "Single calls (1)" in page
    assert FIRST["content"] not in page
    shown = client.get("/", {"single": 1}).content.decode()
    assert FIRST["content"] in shown
    assert "Single calls" not in shown
    found = client.get("/", {"q": "Kyoto"}).content.decode()
    assert FIRST["content"] in found
    send(key, SYSTEM, FIRST, REPLY, SECOND)
    page = client.get("/").content.decode()
    assert "Single calls" not in page
    assert FIRST["content"] in page
