"""Feedback in the admin: found, counted, and one step from what the model saw."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from chatsite.features.feedback import services
from chatsite.review import access_log
from chatsite.review.models import AccessEvent
from memory import transcript

from ...scenes import talk_in_turns

pytestmark = pytest.mark.django_db

WHY = "It forgot <the> budget."


@pytest.fixture
def judged(alice):
    """Three replies: a bad one with a word why, a good one, one without feedback."""
    made = transcript.create_conversation(alice)
    talk_in_turns(made, "One", "Two", "Three")
    services.give_feedback(made, 4, "good")
    services.give_feedback(made, 2, "bad", WHY)
    return made


def look(client, **params):
    answer = client.get(reverse("admin:feedback_feedback_changelist"), params)
    assert answer.status_code == 200
    return answer.content.decode()


def request_of(conversation, seq):
    return reverse("admin:review-request", args=[conversation.pk, seq])


def listed(text, conversation):
    return [seq for seq in (2, 4, 6) if request_of(conversation, seq) in text]


def test_the_list_is_newest_first_and_filtered(reviewer, judged):
    page = look(reviewer)
    assert listed(page, judged) == [2, 4]
    assert page.index(request_of(judged, 2)) < page.index(request_of(judged, 4))
    assert "It forgot &lt;the&gt; budget." in page
    assert page.count('field-written_by">Demo model<') == 2
    assert listed(look(reviewer, verdict__exact="good"), judged) == [4]
    assert listed(look(reviewer, verdict__exact="bad"), judged) == [2]
    assert listed(look(reviewer, has_comment="yes"), judged) == [2]
    assert listed(look(reviewer, has_comment="no"), judged) == [4]
    assert listed(look(reviewer, q=str(judged.uuid)), judged) == [2, 4]


def test_a_row_leads_to_what_the_model_saw_and_both_looks_are_logged(reviewer, judged):
    look(reviewer)
    page = reviewer.get(request_of(judged, 2)).content.decode()
    assert "Feedback: Bad" in page
    assert "It forgot &lt;the&gt; budget." in page
    assert "What the model saw" in page
    logged = AccessEvent.objects.order_by("pk").values_list("target", "conversation")
    assert list(logged) == [
        ("list feedback", judged.uuid),
        ("request #2", judged.uuid),
    ]


def test_comment_is_a_length_without_the_right_to_read(client, staff_with, judged):
    client.force_login(staff_with("metadata"))
    for page in (look(client), client.get(request_of(judged, 2)).content.decode()):
        assert "Bad" in page
        assert "It forgot" not in page
        assert f"hidden, {len(WHY)} characters" in page
    assert not AccessEvent.objects.exists()


def test_a_list_of_many_asks_no_more(client, staff_with, judged, bob):
    client.force_login(staff_with("metadata"))
    look(client)
    with CaptureQueriesContext(connection) as few:
        look(client)
    more = transcript.create_conversation(bob)
    talk_in_turns(more, "One", "Two")
    for seq in (2, 4):
        services.give_feedback(more, seq, "bad", "No.")
    with CaptureQueriesContext(connection) as many:
        look(client)
    assert len(many) == len(few) <= 8


def test_the_access_log_names_its_page_and_its_list():
    assert access_log.describe_target("feedback #2") == "feedback #2"
    named = access_log.describe_target("list feedback")
    assert named == "beginnings of feedback (in a list)"
