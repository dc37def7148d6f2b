"""Staff mark replies, list and export examples, and have them answered: with their
rights, and in the access log."""

import json

import pytest
from asgiref.sync import async_to_sync
from django.urls import reverse

from chatsite.contrib.lab.examples import answers, services
from chatsite.contrib.lab.examples.models import Example
from chatsite.review.models import AccessEvent
from chatsite.turns.models import Job

from ....scenes import signed_in
from .test_export import read

pytestmark = pytest.mark.django_db(transaction=True)

LIST = "admin:examples_example_changelist"


@pytest.fixture
def chat(conversation, alice):
    services.mark_example(conversation, 4, alice, "wrong", "SECRET correction")
    return conversation


def reply_page(chat, seq=4):
    return reverse("review-example", args=[chat.pk, seq])


def looks():
    return list(AccessEvent.objects.order_by("pk").values_list("action", "target"))


def test_readers_mark_replies_and_access_is_logged(chat, staff_with):
    reader = staff_with("metadata", "content")
    client = signed_in(reader)
    page = client.get(reply_page(chat)).content.decode()
    assert "SECRET correction" in page
    assert looks() == [("view", "example #4")]
    client.post(
        reply_page(chat), {"act": "save", "label": "form", "correction": "Short."}
    )
    assert Example.objects.get(author=reader).correction == "Short."
    assert looks()[1:] == [("example", "example #4")]
    assert not chat.changes.filter(action="example").exclude(seq=4).exists()
    inspector = client.get(reverse("admin:review-request", args=[chat.pk, 4]))
    assert reply_page(chat) in inspector.content.decode()
    client.post(reply_page(chat), {"act": "remove"})
    assert Example.objects.get().author == chat.owner


def test_page_explains_refused_marks(chat, reviewer):
    answer = reviewer.post(
        reply_page(chat), {"act": "save", "label": "wrong"}, follow=True
    )
    assert "Write what should have been said." in answer.content.decode()
    assert "There is no reply #3." in (
        reviewer.post(
            reply_page(chat, 3), {"act": "save", "label": "good"}, follow=True
        ).content.decode()
    )


def test_staff_without_content_right_see_labels_and_no_text(chat, staff_with):
    client = signed_in(staff_with("metadata"))
    assert client.get(reply_page(chat)).status_code == 403
    assert client.post(reply_page(chat), {"label": "good"}).status_code == 403
    page = client.get(reverse(LIST)).content.decode()
    assert "Wrong" in page
    assert "SECRET" not in page
    assert "export_evals" not in page
    inspector = client.get(reverse("admin:review-request", args=[chat.pk, 4]))
    assert "Mark this reply" not in inspector.content.decode()


def test_staff_with_export_right_export_the_filtered_examples(chat, staff_with):
    client = signed_in(staff_with("metadata", "content", "export"))
    services.mark_example(chat, 2, chat.owner, "good")
    chosen = [*Example.objects.values_list("pk", flat=True)]
    values = {"action": "export_evals", "_selected_action": chosen}
    answer = client.post(f"{reverse(LIST)}?label__exact=wrong", values)
    lines = async_to_sync(read)(answer).splitlines()
    [item] = [json.loads(line)["item"] for line in lines]
    assert item["correction"] == "SECRET correction"
    assert ("export", "example") in looks()


def test_readers_without_export_right_export_nothing(chat, reviewer):
    values = {"action": "export_evals", "_selected_action": [Example.objects.get().pk]}
    answer = reviewer.post(reverse(LIST), values, follow=True)
    assert not answer.streaming
    assert "export" not in [action for action, _ in looks()]


def test_answers_are_paid_by_who_wants_them(chat, staff_with, settings):
    settings.DEMO_TOKENS_PER_SECOND = 0
    reader = staff_with("metadata", "content")
    client = signed_in(reader)
    client.post(reply_page(chat), {"act": "answer", "model": "demo"})
    assert Job.objects.get(kind=answers.KIND).user == reader
    assert ("example", "example #4") in looks()
