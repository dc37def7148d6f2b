"""A text is read before the transaction that stores it, and a long one only if its
user may send it."""

import pytest
from django.db import connection

from chatsite.features.rules.models import Rule
from chatsite.live import socket_client
from chatsite.protocol.errors import CommandError
from chatsite.turns import commands
from memory import transcript
from memory.engine.rules import detection

LONG = "Always answer in English. " + "We talked on. " * 200


@pytest.fixture
def read(monkeypatch):
    """Return for each text whether rows were locked while its rules were looked for."""
    found, find = [], detection.find_rules

    def finding(text):
        found.append(connection.in_atomic_block)
        return find(text)

    monkeypatch.setattr(detection, "find_rules", finding)
    return found


@pytest.fixture
def conversation(alice):
    return transcript.create_conversation(alice)


def send(conversation, text, client_id="one"):
    return commands.send_message(conversation, text=text, client_id=client_id)


@pytest.mark.django_db(transaction=True)
class TestReading:
    @pytest.mark.parametrize("text", ["Always answer in English.", LONG])
    def test_rows_are_not_locked_while_a_text_is_read(self, conversation, read, text):
        send(conversation, text)
        assert read == [False]
        assert Rule.objects.get().message.seq == 1

    def test_rows_are_not_locked_while_a_message_is_edited(self, conversation, read):
        sent = send(conversation, "Hello.")
        commands.stop_turn(conversation, sent.turn.pk)
        conversation.turns.update(state="stopped")
        values = {"client_id": "two", "text": LONG, "seq": 1}
        socket_client._edit_message(conversation, **values)
        assert read == [False, False]
        assert Rule.objects.count() == 1

    def test_rows_are_not_locked_while_a_conversation_begins(self, client, alice, read):
        client.force_login(alice)
        client.post("/c/", {"first": LONG, "client_id": "one"})
        assert read == [False]
        assert Rule.objects.count() == 1

    def test_text_of_a_refused_message_is_not_read(self, conversation, read, settings):
        settings.QUEUED_PER_USER = 1
        send(conversation, "Hello.")
        with pytest.raises(CommandError, match="still waiting") as refused:
            send(conversation, LONG, "two")
        assert refused.value.code == "queue_full"
        assert read == [False]

    def test_repeated_message_is_known_whatever_the_limits(
        self, conversation, read, settings
    ):
        settings.QUEUED_PER_USER = 1
        first = send(conversation, LONG)
        again = send(conversation, LONG)
        assert (again.created, again.message) == (False, first.message)
        assert len(read) == 1

    def test_a_text_that_can_not_be_stored_is_not_read(self, conversation, read):
        with pytest.raises(transcript.TextError) as refused:
            send(conversation, "a" * 40_000)
        assert refused.value.code == "too_long"
        assert read == []
