"""Examples as files: what was really sent, proved by its hash, of generated
conversations with all that a request can have; and what can't be rebuilt, left out.
"""

import json
import random

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from chatsite.contrib.lab.examples import exporting, proofs, services
from chatsite.contrib.lab.examples.models import Example
from chatsite.contrib.lab.examples.services import mark_example
from chatsite.features.importing.exporting.thread import export_thread
from memory import transcript
from memory.engine.compose import digest_wire
from memory.models import Conversation, ModelCall
from tests.memory.scenes import plant, say

from ....features.importing.test_importing import as_json, take
from ....scenes import HTMX, memory_url, signed_in, talk_in_turns
from ..compare.pairs import Talk

pytestmark = pytest.mark.django_db(transaction=True)


def download(client, form="evals", **query):
    answer = client.get(reverse("examples-export"), {"form": form, **query})
    assert answer.status_code == 200
    lines = async_to_sync(read)(answer).splitlines()
    return answer, [json.loads(line) for line in lines]


async def read(answer):
    return b"".join([part async for part in answer.streaming_content]).decode()


def talk_of_everything(alice, seed):
    """A conversation with summaries, notes, pins, rules, files, edits and other forms
    of messages, each of whose replies is an example."""
    made = transcript.create_conversation(alice)
    talk = Talk(made, random.Random(seed)).begin()
    for _ in range(12):
        talk.say(talk.choose())
    made.refresh_from_db()
    calls = ModelCall.objects.filter(conversation=made).exclude(message=None)
    for n, seq in enumerate(calls.values_list("message__seq", flat=True)):
        label = Example.Label.values[n % 6]
        mark_example(made, seq, alice, label, f"Better {seq} “é” 🙂")
    return made


@pytest.mark.parametrize("seed", range(3))
def test_every_line_hashes_back_to_its_request(client, alice, seed):
    talk_of_everything(alice, seed)
    sent = {
        (str(call.conversation.uuid), call.message.seq): call
        for call in ModelCall.objects.exclude(message=None)
    }
    answer, lines = download(client)
    items = [line["item"] for line in lines]
    assert len(items) == Example.objects.count() == 15
    assert answer["X-Examples"] == "15"
    for item in items:
        call = sent[item["conversation"], item["reply_number"]]
        assert digest_wire(item["messages"]) == call.sha256 == item["sha256"]
        assert item["reply"] == call.message.text
        assert item["correction"] == f"Better {call.message.seq} “é” 🙂"
        assert item["sha256_of"] == "messages"
    _, trained = download(client, "chat")
    for line, item in zip(trained, items, strict=True):
        assert line.keys() == {"messages"}
        assert line["messages"][:-1] == item["messages"]
        said = {"role": "assistant", "content": item["correction"]}
        assert line["messages"][-1] == said


@pytest.fixture
def chat(conversation, alice):
    """Six messages; both later replies are examples."""
    talk_in_turns(conversation, "And now?")
    mark_example(conversation, 4, alice, "wrong", "No idea.")
    mark_example(conversation, 6, alice, "good")
    return Conversation.objects.get(pk=conversation.pk)


def test_export_filters_examples(client, chat):
    _, lines = download(client, label="good")
    assert [each["item"]["reply_number"] for each in lines] == [6]
    # Good as it is: what was said is what should have been.
    assert lines[0]["item"]["correction"] == lines[0]["item"]["reply"]


def test_export_skips_and_counts_requests_that_cannot_be_rebuilt(client, chat):
    client.post(memory_url("message", chat, seq=3, name="delete"), headers=HTMX)
    answer, lines = download(client)
    assert lines == []
    assert (answer["X-Examples"], answer["X-Examples-Left-Out"]) == ("0", "2")
    assert "-0-without-2.jsonl" in answer["Content-Disposition"]
    page = client.get(reverse("examples")).content.decode()
    assert page.count("Message #3 of its request was deleted") == 2
    for each in Example.objects.all():
        page = client.get(reverse("example", args=[each.pk])).content.decode()
        assert "Message #3 of its request was deleted" in page
        assert "Answer again" not in page


def test_a_request_that_is_not_known_says_so(client, alice, chat):
    plant(ModelCall.objects.get(message__seq=4), message=None)
    # Of an old import, whose references have any shape.
    plant(ModelCall.objects.get(message__seq=6), refs={"window": 7})
    answer, lines = download(client)
    assert (lines, answer["X-Examples-Left-Out"]) == ([], "2")
    page = client.get(reverse("examples")).content.decode()
    assert page.count("Its request is not known") == 2


def test_a_line_that_does_not_hash_is_never_written(client, chat):
    """Whatever the references say."""
    plant(ModelCall.objects.get(message__seq=4), sha256="0" * 64)
    _, lines = download(client)
    assert [each["item"]["reply_number"] for each in lines] == [6]


def test_statements_do_not_grow_with_the_examples(client, alice, chat, monkeypatch):
    def count():
        with CaptureQueriesContext(connection) as asked:
            download(client)
            client.get(reverse("examples"))
        return len(asked)

    few = count()
    for n in range(6):
        call = say(chat, f"More {n}")
        mark_example(chat, call.message.seq, alice, "good")
    assert count() == few
    # And no more is rebuilt at once than the memory should hold.
    sizes = []
    prove = proofs.prove_examples
    monkeypatch.setattr(exporting, "REBUILT", 3)
    monkeypatch.setattr(
        exporting, "prove_examples", lambda some: sizes.append(len(some)) or prove(some)
    )
    assert len(download(client)[1]) == 8
    assert sizes == [3, 3, 2]


def test_users_get_only_their_own_examples(bob, client, chat):
    assert download(signed_in(bob))[1] == []
    for pk in Example.objects.values_list("pk", flat=True):
        stranger = signed_in(bob)
        assert stranger.get(reverse("example", args=[pk])).status_code == 404
    assert client.get(reverse("examples-export"), {"form": "csv"}).status_code == 404


class TestConversation:
    """Examples in the export of their conversation."""

    def test_example_of_its_owner_comes_back(self, conversation, alice, bob, staff):
        mark_example(conversation, 4, alice, "wrong", "No idea.")
        mark_example(conversation, 4, staff, "good")
        file = as_json(export_thread(conversation))
        [made] = take(bob, file).imported
        assert as_json(export_thread(made))["examples"] == file["examples"]
        assert made.examples.get().author == bob

    def test_examples_of_a_file_stay_in_the_room_of_their_person(
        self, conversation, alice, bob, monkeypatch
    ):
        mark_example(conversation, 4, alice, "wrong", "No idea.")
        file = as_json(export_thread(conversation))
        file["examples"] *= 2
        monkeypatch.setattr(services, "MOST", 0)
        [made] = take(bob, file).imported
        assert not made.examples.exists()
