"""A site that has conversations of clients, and `endpoint` off: without what the app
registers for them."""

from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection

from chatsite import plugins
from chatsite.contrib.endpoint import keys
from chatsite.review.timeline import request_inspector
from chatsite.turns import requests
from memory.models import Conversation
from memory.view import rebuilding

from .asgi_client import send

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def sent(alice, upstream):
    key = keys.create_api_key(alice, "Qwen Code")[1]
    send(key, {"role": "user", "content": "Hello"})
    return Conversation.objects.get()


def tamper():
    with connection.cursor() as cursor:
        cursor.execute("UPDATE memory_modelcall SET sha256 = %s", ["0" * 64])


def audit():
    out = StringIO()
    call_command("audit", stdout=out)
    return out.getvalue()


def test_audit_counts_requests_that_it_cannot_check(sent, monkeypatch):
    monkeypatch.delitem(rebuilding.rebuilders, "client")
    said = audit()
    assert "1 requests of other clients were not checked" in said
    assert "clean" in said


@pytest.mark.changes_records
def test_audit_checks_client_requests_if_the_app_is_on(sent):
    assert "not checked" not in audit()
    tamper()
    with pytest.raises(SystemExit):
        audit()


def test_a_conversation_of_a_client_is_written_by_it_alone(sent):
    """The refusal is the core's own, so that it does not go with the app."""
    refusals = plugins.guards["send"]
    assert not [each for each in refusals if "contrib" in each.__module__]
    assert "Qwen Code writes this conversation" in plugins.find_write_refusal(sent)


def test_a_request_of_a_client_is_unknown_to_each_page(sent, client, monkeypatch):
    reply = sent.messages.get(role="assistant").seq
    client.force_login(sent.owner)
    path = f"/c/{sent.uuid}/context.json?reply={reply}"
    known = client.get(path)
    monkeypatch.delitem(rebuilding.rebuilders, "client")
    assert (known.status_code, client.get(path).status_code) == (200, 404)
    assert not sent.messages.filter(requests.has_request()).exists()
    assert request_inspector.call_of(sent, reply) is None
