"""Feedback in the admin: found, counted, and one step from what the model saw."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from chatsite.pages.feedback import store
from chatsite.review.charts import site_metrics
from chatsite.review.charts.days import Days
from chatsite.review.charts.site_metrics import Marked
from chatsite.review.models import AccessEvent
from chatsite.turns.models import Feedback
from memory import transcript
from tests.memory.scenes import plant

from ..scenes import talk_in_turns

pytestmark = pytest.mark.django_db

WHY = "It forgot <the> budget."


@pytest.fixture
def judged(alice):
    """Three replies: a bad one with a word why, a good one, one without feedback."""
    made = transcript.create(alice)
    talk_in_turns(made, "One", "Two", "Three")
    store.give(made, 4, "good")
    store.give(made, 2, "bad", WHY)
    return made


def look(client, **params):
    answer = client.get(reverse("admin:chat_feedback_changelist"), params)
    assert answer.status_code == 200
    return answer.content.decode()


def request_of(conversation, seq):
    return reverse("admin:desk-request", args=[conversation.pk, seq])


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


def test_without_the_right_to_read_there_is_a_length(client, staff_with, judged):
    client.force_login(staff_with("metadata"))
    for page in (look(client), client.get(request_of(judged, 2)).content.decode()):
        assert "Bad" in page
        assert "budget" not in page
        assert f"hidden, {len(WHY)} characters" in page
    assert not AccessEvent.objects.exists()


def test_a_list_of_many_asks_no_more(client, staff_with, judged, bob):
    client.force_login(staff_with("metadata"))
    look(client)
    with CaptureQueriesContext(connection) as few:
        look(client)
    more = transcript.create(bob)
    talk_in_turns(more, "One", "Two")
    for seq in (2, 4):
        store.give(more, seq, "bad", "No.")
    with CaptureQueriesContext(connection) as many:
        look(client)
    assert len(many) == len(few) <= 8


def test_it_is_counted_for_each_model(judged):
    calls = judged.model_calls.filter(purpose="reply").order_by("pk")
    plant(calls[1], model="small")
    store.give(judged, 6, "bad")
    # An imported reply has no request.
    judged.turns.update(call=None)
    calls.filter(message__seq=6)._raw_delete("default")
    assert site_metrics.measure(Days.until_today()).feedback == (
        Marked("", 0, 1, 0),
        Marked("demo", 0, 1, 1),
        Marked("small", 1, 0, 0),
    )


def test_the_first_page_counts_it_and_leads_to_the_bad_ones(reviewer, judged):
    page = " ".join(reviewer.get(reverse("admin:index")).content.decode().split())
    address = reverse("admin:chat_feedback_changelist")
    assert f'<a href="{address}?verdict__exact=bad">Replies marked as bad</a>' in page
    assert "1 as good" in page
    assert "Feedback by model" in page


def test_days_in_parts_add_up(judged):
    days = Days.until_today()
    assert site_metrics.of(days).feedback == site_metrics.measure(days).feedback
    Feedback.objects.all().delete()
    assert site_metrics.measure(days).feedback == ()
