"""Evidence of requests with images, of other clients, and of tries in another way."""

import base64
import hashlib
import json

import pytest
from asgiref.sync import async_to_sync
from django.db import connection

from chatsite.contrib.endpoint import keys
from chatsite.turns import lifecycle, runner, variations
from chatsite.turns.copying import copies
from memory import actions
from memory.models import Conversation
from memory.view.variation import Variation
from tests.fakes.held_threads import HeldState

from ...features.attachments.images.scenes import send_images
from ...scenes import submit, violations
from ..endpoint.asgi_client import send
from ..endpoint.test_held_state import Thread

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def client_key(alice, upstream):
    return keys.create_api_key(alice, "Script")[1]


def user(text):
    return {"role": "user", "content": text}


class TestSent:
    def test_body_that_left_is_in_the_file(self, conversation, upstream, download):
        reply = submit(conversation, "One more").turn.reply_seq
        claim = lifecycle.claim(conversation.pk)
        claim, result = async_to_sync(runner.run_attempt)(claim)
        lifecycle.finish(claim, result)
        evidence = download(conversation, f"?reply={reply}")
        (sent,) = [each.raw for each in upstream.requests if b"One more" in each.raw]
        request = evidence.own["request"]
        assert "".join(request["body"]).encode() == sent
        assert request["sha256"] == hashlib.sha256(sent).hexdigest()
        assert (request["covers"], request["kind"]) == ("body", "sent")
        assert evidence.check()[0]

    @pytest.mark.changes_records
    def test_changed_row_is_noticed(self, conversation, download):
        with connection.cursor() as cursor:
            cursor.execute("UPDATE memory_message SET text = 'Other' WHERE seq = 1")
        evidence = download(conversation, "?reply=4")
        assert "its parts are no longer what was sent" in evidence.check()[1]


class TestImages:
    def test_images_are_in_the_file_by_hash(self, conversation, download):
        message = send_images(conversation)
        data = bytes(message.image_files.get().data)
        evidence = download(conversation)
        (image,) = evidence.own["request"]["images"]
        assert image["sha256"] == hashlib.sha256(data).hexdigest()
        assert (image["media_type"], image["bytes"]) == ("image/png", len(data))
        assert base64.b64encode(data) not in evidence.data
        is_right, text = evidence.check()
        assert is_right
        assert "the request is not rebuilt: its images are in the file by" in text

    def test_images_are_in_the_file_if_asked_for(self, conversation, download):
        send_images(conversation)
        evidence = download(conversation, "?images")
        is_right, text = evidence.check()
        assert is_right
        assert "the request rebuilds to its hash" in text


class TestClients:
    def test_bytes_of_a_client_are_in_the_file(self, client_key, upstream, download):
        said = [user("One  é?"), {"role": "assistant", "content": "A"}, user("Two?")]
        send(client_key, *said)
        evidence = download(Conversation.objects.get())
        request = evidence.own["request"]
        assert "".join(request["body"]).encode() == upstream.requests[-1].raw
        assert evidence.places == {1: "sent", 2: "sent", 3: "sent", 4: "reply"}
        assert "3 of 3 messages accounted for: 3 sent" in evidence.check()[1]

    def test_request_with_a_deleted_message_is_left_out(self, client_key, download):
        send(client_key, user("My secret is xyzzy"))
        conversation = Conversation.objects.get()
        # The reply quotes it.
        for seq in (1, 2):
            actions.delete_message(conversation, seq)
        evidence = download(conversation)
        assert b"xyzzy" not in evidence.data
        assert "a part of it was erased" in evidence.check()[1]

    def test_held_messages_have_a_place(self, client_key, upstream, settings, download):
        settings.ANTHROPIC_BASE_URL = upstream.url.removesuffix("/v1")
        settings.ANTHROPIC_API_KEY = "sk-ant-SECRET"
        upstream.held = HeldState()
        thread = Thread(client_key)
        for text in ("One?", "Two?"):
            async_to_sync(thread.send)(text)
        evidence = download(Conversation.objects.get())
        assert evidence.places == {1: "held", 2: "held", 3: "sent", 4: "reply"}
        text = "3 of 3 messages accounted for: 1 sent, 2 held by the provider"
        assert text in evidence.check()[1]


class TestCopies:
    def test_branch_has_its_own_account(self, conversation, download):
        branch = copies.branch_conversation(conversation, 2)
        evidence = download(branch)
        assert evidence.places == {1: "sent", 2: "sent"}
        assert evidence.own["branched_from"] == str(conversation.uuid)
        assert evidence.check()[0]

    def test_message_that_is_hidden_for_one_reply_is_left_out(
        self, conversation, download
    ):
        variations.set_next(conversation, Variation(left_out=1))
        conversation.refresh_from_db()
        evidence = download(conversation)
        assert evidence.places[1] == "owner"
        assert evidence.check()[0]


class TestNext:
    def test_body_that_would_leave_is_in_the_file(self, conversation, download):
        evidence = download(conversation)
        request = evidence.own["request"]
        body = json.loads("".join(request["body"]))
        assert body["messages"][-1]["content"].startswith("Reply to")
        assert (request["covers"], request["kind"]) == ("body", "next")
        assert violations() == []
