"""The review queue: what comes into it and leaves it, who works on it, who reads it."""

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from chatsite.features.feedback import services as feedback
from chatsite.features.review_queue import services
from chatsite.features.review_queue.admin import QueueItemAdmin
from chatsite.features.review_queue.models import QueueItem
from chatsite.review.models import AccessEvent
from chatsite.turns import commands
from chatsite.turns.models import Turn
from memory import transcript
from memory.models import Conversation
from tests.memory.scenes import summarise

from ...scenes import submit, talk_in_turns

pytestmark = pytest.mark.django_db
NOTE = "Says <nothing> of the budget."
LIST = "admin:review_queue_queueitem_changelist"
PAGE = "admin:review_queue_queueitem_change"
QUOTED = {"unsupported": ["3,200 euros"]}


def make_findings(owner):
    """Bad feedback on #2, good on #4, a failed turn for #6, and a flagged summary."""
    made = transcript.create_conversation(owner)
    talk_in_turns(made, "One", "Two")
    feedback.give_feedback(made, 2, "bad", "It forgot the budget.")
    feedback.give_feedback(made, 4, "good")
    submit(made, "Three")
    made.turns.filter(reply_seq=6).update(state=Turn.State.FAILED, error="timeout")
    summarise(made, 1, 2, text="Sound.")
    summarise(made, 3, 4, text="With a fact of its own.", flags=QUOTED)
    return made


@pytest.fixture
def findings(alice):
    return make_findings(alice)


def look(client, **params):
    answer = client.get(reverse(LIST), params)
    assert answer.status_code == 200
    return answer.content.decode()


def kept():
    rows = QueueItem.objects.order_by("kind")
    return [*rows.values_list("kind", "number", "state")]


def item_of(kind):
    services.refresh_queue()
    return QueueItem.objects.get(kind=kind)


def save(client, item, **values):
    page = client.get(reverse(PAGE, args=[item.pk]))
    form = page.context["adminform"].form
    data = {"state": item.state, "assignee": item.assignee_id or "", "note": item.note}
    data = {**data, "seen": form.initial["seen"], **values}
    return client.post(reverse(PAGE, args=[item.pk]), data)


ALL = [("feedback", 2, "open"), ("summary", 2, "open"), ("turn", 6, "open")]


class TestWhatIsInIt:
    def test_bad_feedback_flagged_summaries_and_failed_turns(self, reviewer, findings):
        for _again in range(2):
            page = look(reviewer)
            assert kept() == ALL
        turn = findings.turns.get(reply_seq=6)
        for address in (
            reverse("admin:review-request", args=[findings.pk, 2]),
            reverse("admin:review-timeline", args=[findings.pk]) + "?v=2",
            reverse("admin:chat_turn_change", args=[turn.pk]),
        ):
            assert f'href="{address}"' in page
            assert reviewer.get(address).status_code == 200

    def test_giving_feedback_and_a_failing_turn_write_nothing_of_it(self, findings):
        assert not QueueItem.objects.exists()

    def test_item_without_a_reason_leaves_unless_it_was_begun(self, findings):
        services.refresh_queue()
        QueueItem.objects.filter(kind="turn").update(state="work")
        feedback.give_feedback(findings, 2, "good")
        findings.turns.update(state=Turn.State.DONE)
        findings.summaries.filter(version=2).update(status="superseded")
        services.refresh_queue()
        assert kept() == [("turn", 6, "work")]

    def test_item_with_a_new_reason_is_open_again(self, findings):
        services.refresh_queue()
        turn = findings.turns.get(reply_seq=6)
        QueueItem.objects.update(state="done", note=NOTE)
        regenerated = commands.regenerate_reply(findings, turn.pk)
        feedback.give_feedback(findings, 2, "good")
        services.refresh_queue()
        assert {state for *_item, state in kept()} == {"done"}
        Turn.objects.filter(pk=turn.pk).update(state=Turn.State.FAILED)
        feedback.give_feedback(findings, 2, "bad")
        for _again in range(2):
            services.refresh_queue()
            assert kept() == [
                ("feedback", 2, "open"),
                ("summary", 2, "done"),
                ("turn", regenerated.reply_seq, "open"),
            ]
        assert regenerated.reply_seq != 6
        assert {*QueueItem.objects.values_list("note", flat=True)} == {NOTE}

    def test_item_in_work_stays_so_at_a_new_reason(self, findings):
        item = item_of("feedback")
        QueueItem.objects.filter(pk=item.pk).update(state="work")
        feedback.give_feedback(findings, 2, "bad", "And it is late.")
        again = item_of("feedback")
        assert again.state == "work"
        assert again.found_at > item.found_at
        assert again.changed_at > item.changed_at

    def test_the_list_says_which_has_no_reason_any_more(self, reviewer, findings):
        services.refresh_queue()
        QueueItem.objects.update(state="work")
        assert "(no longer applies)" not in look(reviewer)
        feedback.give_feedback(findings, 2, "")
        assert look(reviewer).count("</a> (no longer applies)") == 1

    def test_a_temporary_conversation_is_not(self, findings):
        ends = Now() + timedelta(hours=1)
        Conversation.objects.filter(pk=findings.pk).update(temporary_until=ends)
        services.refresh_queue()
        assert kept() == []

    def test_newest_rows_alone_are_read(self, alice, findings, monkeypatch):
        monkeypatch.setattr(services, "MOST", 1)
        newer = make_findings(alice)
        services.refresh_queue()
        assert {*QueueItem.objects.values_list("conversation", flat=True)} == {newer.pk}

    def test_item_is_deleted_with_its_conversation(self, findings):
        services.refresh_queue()
        findings.delete()
        assert kept() == []

    def test_many_ask_no_more_than_few(self, client, staff_with, findings, bob):
        client.force_login(staff_with("metadata"))
        look(client)
        with CaptureQueriesContext(connection) as few:
            look(client)
        for _each in range(3):
            make_findings(bob)
        services.refresh_queue()
        with CaptureQueriesContext(connection) as many:
            look(client)
        assert QueueItem.objects.count() == 12
        assert len(many) == len(few) <= 16


class TestWork:
    def test_state_assignee_and_note_are_kept_and_written_down(
        self, reviewer, findings, staff_with
    ):
        item, other = item_of("feedback"), staff_with("metadata")
        values = {"state": "work", "assignee": other.pk, "note": NOTE}
        assert save(reviewer, item, **values).status_code == 302
        item.refresh_from_db()
        assert (item.state, item.assignee, item.note) == ("work", other, NOTE)
        events = AccessEvent.objects.order_by("pk")
        target = f"queueitem {item.pk}"
        assert [*events.values_list("action", "target", "conversation")] == [
            ("view", target, findings.uuid),
            ("queue", target, findings.uuid),
        ]

    def test_slower_reviewer_sees_that_the_item_was_changed(self, reviewer, findings):
        item = item_of("turn")
        page = reviewer.get(reverse(PAGE, args=[item.pk]))
        seen = page.context["adminform"].form.initial["seen"]
        assert save(reviewer, item, note="First.").status_code == 302
        answer = save(reviewer, item, note="Second.", seen=seen)
        assert "Someone has changed this item meanwhile" in answer.content.decode()
        item.refresh_from_db()
        assert item.note == "First."

    def test_several_are_taken_and_finished(self, reviewer, findings):
        services.refresh_queue()
        user = reviewer.session["_auth_user_id"]
        chosen = QueueItem.objects.exclude(kind="turn").values_list("pk", flat=True)
        values = {"_selected_action": [*chosen]}
        reviewer.post(reverse(LIST), {**values, "action": "assign_to_me"})
        rows = QueueItem.objects.filter(state="work", assignee=user)
        assert {*rows.values_list("pk", flat=True)} == {*chosen}
        reviewer.post(reverse(LIST), {**values, "action": "mark_finished"})
        done = [("feedback", 2, "done"), ("summary", 2, "done"), ("turn", 6, "open")]
        assert kept() == done
        assert AccessEvent.objects.filter(action="queue").count() == 4

    def test_items_of_others_and_missing_items_are_left_out(
        self, reviewer, findings, staff_with
    ):
        services.refresh_queue()
        other = staff_with("content")
        QueueItem.objects.filter(kind="turn").update(assignee=other)
        chosen = [*QueueItem.objects.values_list("pk", flat=True)]
        values = {"_selected_action": chosen, "action": "assign_to_me"}
        page = reviewer.post(reverse(LIST), values, follow=True).content.decode()
        assert "2 items: done." in page
        assert "1 item was left out: someone else has it, or it is gone." in page
        item = QueueItem.objects.get(kind="turn")
        assert (item.assignee, item.state) == (other, "open")

    def test_an_item_that_is_gone_is_no_error(self, reviewer, findings, monkeypatch):
        services.refresh_queue()
        chosen = [*QueueItem.objects.values_list("pk", flat=True)]
        change = QueueItemAdmin._change

        def change_later(self, request, rows, *which, **values):
            listed = rows.all()
            listed.values_list = lambda *_names, **_flat: chosen
            QueueItem.objects.filter(kind="turn").delete()
            change(self, request, listed, *which, **values)

        monkeypatch.setattr(QueueItemAdmin, "_change", change_later)
        values = {"_selected_action": chosen, "action": "mark_finished"}
        page = reviewer.post(reverse(LIST), values, follow=True).content.decode()
        assert "2 items: done." in page
        assert "1 item was left out" in page

    def test_changed_fields_alone_are_written(self, reviewer, findings):
        item = item_of("turn")
        with CaptureQueriesContext(connection) as ran:
            assert save(reviewer, item, note="Seen.").status_code == 302
        writes = [each["sql"] for each in ran if each["sql"].startswith('UPDATE "rev')]
        assert len(writes) == 1
        assert "note" in writes[0]
        assert "state" not in writes[0]

    def test_actions_take_one_page_at_most(self, reviewer, findings, monkeypatch):
        monkeypatch.setattr("chatsite.features.review_queue.admin.MAX_AT_ONCE", 2)
        services.refresh_queue()
        chosen = [*QueueItem.objects.values_list("pk", flat=True)]
        values = {"_selected_action": chosen, "action": "mark_finished"}
        answer = reviewer.post(reverse(LIST), values, follow=True)
        assert "Choose at most 2 items at once." in answer.content.decode()
        assert kept() == ALL

    def test_filters(self, reviewer, findings):
        services.refresh_queue()
        user = reviewer.session["_auth_user_id"]
        QueueItem.objects.filter(kind="turn").update(assignee=user, state="work")
        QueueItem.objects.filter(kind="summary").update(assignee=findings.owner)
        names = {"feedback": "#2", "summary": "v2", "turn": "#6"}
        for params, found in (
            ({"assigned": "me"}, {"turn"}),
            ({"assigned": "others"}, {"summary"}),
            ({"assigned": "none"}, {"feedback"}),
            ({"state__exact": "open"}, {"feedback", "summary"}),
            ({"kind__exact": "feedback"}, {"feedback"}),
            ({"q": str(findings.uuid)}, set(names)),
        ):
            page = look(reviewer, **params)
            assert {kind for kind in names if f">{names[kind]}<" in page} == found

    def test_staff_alone_can_be_assigned(self, reviewer, findings, bob):
        item = item_of("turn")
        assert save(reviewer, item, assignee=bob.pk).status_code == 200
        item.refresh_from_db()
        assert item.assignee is None


class TestReading:
    def test_item_is_a_length_without_form_if_staff_may_not_read(
        self, client, staff_with, findings
    ):
        item = item_of("feedback")
        QueueItem.objects.update(note=NOTE)
        client.force_login(staff_with("metadata"))
        page = reverse(PAGE, args=[item.pk])
        for text in (look(client), client.get(page).content.decode()):
            assert "of the budget" not in text
            assert "It forgot" not in text
            assert f"hidden, {len(NOTE)} characters" in text
        assert client.post(page, {"state": "done"}).status_code == 403
        values = {"_selected_action": [item.pk], "action": "mark_finished"}
        client.post(reverse(LIST), values)
        assert {state for _kind, _number, state in kept()} == {"open"}
        assert not AccessEvent.objects.exists()

    def test_list_with_the_right_is_logged(self, reviewer, findings):
        services.refresh_queue()
        QueueItem.objects.update(note=NOTE)
        assert "Says &lt;nothing&gt; of the budget." in look(reviewer)
        event = AccessEvent.objects.get()
        assert (event.target, event.conversation) == ("list queueitem", findings.uuid)

    def test_user_without_the_right_fills_nothing(self, client, staff_with, findings):
        client.force_login(staff_with("content"))
        assert client.get(reverse(LIST)).status_code == 403
        assert kept() == []

    def test_the_request_of_a_reply_leads_to_its_item(self, reviewer, findings):
        item = item_of("feedback")
        request = reverse("admin:review-request", args=[findings.pk, 2])
        page = reviewer.get(request).content.decode()
        assert f'<a href="{reverse(PAGE, args=[item.pk])}">Bad feedback</a>' in page
        other = reverse("admin:review-request", args=[findings.pk, 4])
        assert "Bad feedback" not in reviewer.get(other).content.decode()
