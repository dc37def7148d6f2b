"""Actions of a reviewer on the model's view, and the record that they looked at it."""

import re

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.messages import get_messages
from django.test import Client
from django.urls import reverse
from django.utils.html import escape

from chatsite.protocol import events
from chatsite.review.actions.services import State
from chatsite.review.models import AccessEvent, Review
from memory import actions, library, transcript
from memory.compaction import commit, lease, preparation
from memory.engine.compaction import find_important
from memory.engine.summaries.summarizer import SummaryText
from memory.models import Conversation, Summary
from tests.memory.scenes import say, summarise, talk

ACTS = {
    "rebuild": {"cause": "lost"},
    "restore": {"version": "1"},
    "review": {"note": "Nothing is missing."},
}


@pytest.fixture
def published(monkeypatch):
    """The events that open pages got."""
    seen = []

    async def publish(conversation_id, event):
        seen.append((conversation_id, event))

    monkeypatch.setattr(events, "publish_event", publish)
    return seen


def post(client, name, conversation, **fields):
    conversation.refresh_from_db()
    seen = State.of_conversation(conversation)
    values = {
        "seen": str(seen),
        "uuid": conversation.uuid,
        **ACTS.get(name, {}),
        **fields,
    }
    return client.post(reverse(f"admin:review-{name}", args=[conversation.pk]), values)


def said(response):
    return [str(each) for each in get_messages(response.wsgi_request)]


def in_force(conversation):
    rows = conversation.summaries.filter(status=Summary.Status.ACTIVE)
    return list(rows.order_by("version").values_list("version", flat=True))


def changelist(client, **params):
    url = reverse("admin:memory_conversation_changelist")
    return client.get(url, params).content.decode()


def test_each_act_needs_metadata_and_its_own_right(
    client, staff_with, versions, conversation
):
    needs = {**dict.fromkeys(ACTS, "content"), "purge": "purge"}
    rights = ("content", "export", "purge")
    users = {right: staff_with("metadata", right) for right in rights}
    nearly = [staff_with(), staff_with(*rights)]
    for name, needed in needs.items():
        others = [user for right, user in users.items() if right != needed]
        many = reverse("admin:review-bulk", args=[name])
        for user in (*nearly, *others):
            client.force_login(user)
            assert post(client, name, conversation).status_code in (403, 405), name
            assert client.post(many).status_code in (403, 404), name
        client.force_login(users[needed])
        assert post(client, name, conversation).status_code in (200, 302, 405), name
    assert Conversation.objects.filter(deleted_at=None).exists()


def test_actions_are_refused_where_staff_may_not_read(
    client, staff, settings, versions, conversation
):
    settings.STAFF_CAN_READ_CHATS = False
    client.force_login(staff)
    for name in ACTS:
        assert post(client, name, conversation).status_code == 403


def test_acts_demand_a_csrf_token(staff_with, conversation):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(staff_with("metadata", "content", "export", "purge"))
    for name in ACTS:
        assert post(strict, name, conversation).status_code == 403
    many = reverse("admin:review-bulk", args=["purge"])
    assert strict.post(many, {"uuid": conversation.uuid}).status_code == 403


def test_the_page_offers_what_may_be_done(client, staff_with, versions, conversation):
    url = reverse("admin:memory_conversation_change", args=[conversation.pk])
    offers = {
        "content": ["review-review", "review-rebuild"],
        "export": [],
        "purge": ["review-purge"],
    }
    for right, names in offers.items():
        client.force_login(staff_with("metadata", right))
        text = client.get(url).content.decode()
        for name in ("review-review", "review-rebuild", "review-purge"):
            address = reverse(f"admin:{name}", args=[conversation.pk])
            assert (f'"{address}"' in text) is (name in names), (right, name)


class TestRebuild:
    def test_rebuild_voids_all_summaries_and_informs_everyone(
        self, reviewer, versions, conversation, published
    ):
        assert post(reviewer, "rebuild", conversation).status_code == 302
        assert in_force(conversation) == []
        [event] = AccessEvent.objects.filter(action="rebuild")
        assert (event.conversation, event.target) == (conversation.uuid, "cause lost")
        [entry] = LogEntry.objects.all()
        assert (entry.object_repr, entry.object_id) == (
            str(conversation),
            str(conversation.pk),
        )
        assert published == [(conversation.pk, events.Memory(None, "changed"))]

    def test_a_second_click_is_told_that_the_view_has_changed(
        self, reviewer, versions, conversation
    ):
        seen = str(State.of_conversation(conversation))
        post(reviewer, "rebuild", conversation)
        again = post(reviewer, "rebuild", conversation, seen=seen)
        assert "has changed since this page was loaded" in said(again)[-1]
        assert AccessEvent.objects.filter(action="rebuild").count() == 1

    def test_words_of_a_person_stay_unless_they_are_what_is_wrong(
        self, reviewer, conversation
    ):
        summarise(conversation, 1, 2, text="Mine.", model="")
        refused = post(reviewer, "rebuild", conversation)
        assert "People have edited all" in said(refused)[0]
        summarise(conversation, 3, 4, text="By a model.", model="m")
        post(reviewer, "rebuild", conversation)
        assert in_force(conversation) == [1]
        post(reviewer, "rebuild", conversation, cause="changed")
        assert in_force(conversation) == []

    def test_rebuild_needs_a_current_summary(self, reviewer, conversation):
        answer = post(reviewer, "rebuild", conversation)
        assert "nothing to summarise again" in said(answer)[0]
        assert not LogEntry.objects.exists()

    def test_a_compaction_that_was_under_way_changes_nothing(
        self, reviewer, versions, conversation
    ):
        actions.set_policy(conversation, {"preset": "langgraph"})
        talk(conversation, 4)
        claim = lease.claim_compaction(conversation.pk, force=True)
        job = preparation.prepare_job(claim, lambda _: None, None, None, True)
        post(reviewer, "rebuild", conversation)
        late = SummaryText("Too late.", "0" * 64, 1)
        important = find_important(job.policy, job.step)
        assert commit.commit_summary(claim, job, "m", late, important) is None
        assert in_force(conversation) == []

    def test_a_wrong_or_incomplete_form_is_refused(
        self, reviewer, versions, conversation
    ):
        for cause in ("", "because", "x" * 5000):
            answer = post(reviewer, "rebuild", conversation, cause=cause)
            assert "Reason" in said(answer)[-1]
        for seen in ("", "x", "1.2", "1.2.3.4", "9" * 40 + ".1.1"):
            answer = post(reviewer, "rebuild", conversation, seen=seen)
            assert "not complete" in said(answer)[-1]
        assert in_force(conversation) == [2]

    def test_rebuild_leaves_a_deleted_conversation_alone(
        self, reviewer, versions, conversation
    ):
        library.delete_conversation(conversation)
        answer = post(reviewer, "rebuild", conversation)
        assert "deleted" in said(answer)[0]

    def test_several_are_asked_about_first(
        self, reviewer, alice, versions, conversation
    ):
        empty = transcript.create_conversation(alice)
        fields = {
            "action": "rebuild",
            "_selected_action": [conversation.pk, empty.pk],
        }
        page = reviewer.post(reverse("admin:memory_conversation_changelist"), fields)
        uuids = re.findall(r'name="uuid" value="([^"]+)"', page.content.decode())
        assert sorted(uuids) == sorted([str(conversation.uuid), str(empty.uuid)])
        assert in_force(conversation) == [2]
        url = reverse("admin:review-bulk", args=["rebuild"])
        words = said(reviewer.post(url, {"uuid": uuids, "cause": "outdated"}))
        assert in_force(conversation) == []
        assert any("nothing to summarise again" in each for each in words)


class TestRestore:
    def test_an_older_version_comes_back_by_the_reviewer(
        self, reviewer, versions, conversation, published
    ):
        assert post(reviewer, "restore", conversation).status_code == 302
        new = Summary.objects.get(status=Summary.Status.ACTIVE)
        assert (new.version, new.text) == (3, "The first text.")
        assert new.author.username == "staff-metadata-content"
        assert AccessEvent.objects.get(action="restore").target == "version 1 as 3"
        assert len(published) == 1

    def test_edited_summary_that_would_go_is_asked_about(
        self, reviewer, versions, conversation
    ):
        owner = conversation.owner
        conversation.refresh_from_db()
        actions.rewrite_summary(conversation, 2, "By hand.", author=owner)
        before = in_force(conversation)
        asked = post(reviewer, "restore", conversation, next="/admin/?a=1")
        text = asked.content.decode()
        assert asked.status_code == 409
        assert "The edited summary v3 covers messages of v1 and others." in text
        assert in_force(conversation) == before
        names = re.findall(r'<input type="hidden" name="(\w+)" value="(.*?)">', text)
        done = reviewer.post(asked.wsgi_request.path, dict(names))
        assert done["Location"] == "/admin/?a=1"
        assert in_force(conversation) == [4]
        assert AccessEvent.objects.get(action="restore").target == "version 1 as 4"

    def test_restore_by_a_second_reviewer_is_refused(
        self, reviewer, versions, conversation
    ):
        seen = str(State.of_conversation(conversation))
        post(reviewer, "restore", conversation)
        again = post(reviewer, "restore", conversation, seen=seen)
        assert "another reviewer" in said(again)[-1]
        assert in_force(conversation) == [3]

    def test_restore_refuses_versions_with_the_reason(
        self, reviewer, versions, conversation
    ):
        for number, version in enumerate(("2", "7", "", "-1", "1e9", "9" * 30), 1):
            answer = post(reviewer, "restore", conversation, version=version)
            assert len(said(answer)) == number
        assert in_force(conversation) == [2]
        assert not AccessEvent.objects.filter(action="restore").exists()

    def test_the_page_of_a_version_that_may_come_back_offers_it(
        self, rf, reviewer, versions, conversation
    ):
        from django.template.loader import render_to_string

        from chatsite.review.rights import Rights

        for version, offered in ((1, True), (versions[0], True), (2, False)):
            versions[0].refresh_from_db()
            values = {
                "conversation": conversation,
                "rights": Rights(metadata=True, content=True),
                "version": version,
            }
            template = "admin/review/_actions.html"
            text = render_to_string(template, values, rf.get("/here/"))
            assert ("Restore v1" in text) is offered


class TestReview:
    def test_review_records_who_saw_what(self, reviewer, versions, conversation):
        post(reviewer, "review", conversation)
        row = Review.objects.get()
        assert (row.version, row.last_seq, row.note) == (2, 8, "Nothing is missing.")
        assert row.username == "staff-metadata-content"
        assert AccessEvent.objects.get(action="review").target == "transcript #1-#8, v2"
        assert "Nothing is missing" not in LogEntry.objects.get().change_message

    def test_review_covers_what_the_page_showed(self, reviewer, conversation):
        seen = str(State.of_conversation(conversation))
        say(conversation, "Said while the reviewer was reading")
        post(reviewer, "review", conversation, seen=seen)
        assert Review.objects.get().last_seq == 8

    def test_the_same_is_not_said_twice(self, reviewer, conversation):
        post(reviewer, "review", conversation)
        again = post(reviewer, "review", conversation)
        assert "marked it already" in said(again)[-1]
        assert post(reviewer, "review", conversation, note="").status_code == 302
        assert Review.objects.count() == 2

    def test_review_of_a_later_state_is_refused(self, reviewer, conversation):
        answer = post(reviewer, "review", conversation, seen="999.1.1")
        assert "belongs to another conversation" in said(answer)[0]
        assert not Review.objects.exists()

    @pytest.mark.parametrize("change", ["nothing", "message", "fold", "leave out"])
    def test_the_list_knows_what_has_changed_since(
        self, reviewer, conversation, change
    ):
        short = str(conversation.uuid)
        assert short in changelist(reviewer, reviewed="no")
        post(reviewer, "review", conversation)
        if change == "message":
            say(conversation, "More")
        elif change == "fold":
            summarise(conversation, 1, 4)
            Conversation.objects.update(memory_version=5)
        elif change == "leave out":
            actions.exclude_messages(conversation, [1])
        is_new = change == "nothing"
        assert short not in changelist(reviewer, reviewed="no")
        assert (short in changelist(reviewer, reviewed="yes")) is is_new
        assert (short in changelist(reviewer, reviewed="changed")) is not is_new
        assert short in changelist(reviewer, reviewed="what")

    def test_the_latest_review_counts(self, reviewer, conversation):
        post(reviewer, "review", conversation)
        say(conversation, "More")
        post(reviewer, "review", conversation, note="Again.")
        assert str(conversation.uuid) in changelist(reviewer, reviewed="yes")

    def test_a_note_is_shown_to_those_who_may_read(
        self, client, staff_with, reviewer, conversation
    ):
        note = "<script>alert(1)</script> {{ 7|add:7 }}"
        post(reviewer, "review", conversation, note=note)
        url = reverse("admin:memory_conversation_change", args=[conversation.pk])
        assert escape(note) in reviewer.get(url).content.decode()
        client.force_login(staff_with("metadata"))
        text = client.get(url).content.decode()
        assert "up to message #8" in text
        assert "alert(1)" not in text


class TestAddress:
    def test_redirect_leads_back_within_the_site_only(self, reviewer, conversation):
        own = reverse("admin:memory_conversation_change", args=[conversation.pk])
        for page in ("//evil.example/", "https://evil.example/", "", "\\\\evil"):
            answer = post(reviewer, "review", conversation, next=page)
            assert answer.url == own
        page = reverse("admin:memory_summary_changelist") + "?q=x"
        assert post(reviewer, "review", conversation, next=page).url == page

    def test_action_on_a_missing_conversation_reports_it(
        self, client, staff, conversation
    ):
        client.force_login(staff)
        for name in ACTS:
            url = reverse(f"admin:review-{name}", args=[conversation.pk + 1000])
            answer = client.post(url, {"uuid": conversation.uuid, **ACTS[name]})
            assert answer.status_code == 302
            assert "no longer exists" in said(answer)[-1]

    def test_a_forged_id_is_a_404(self, client, staff, conversation):
        client.force_login(staff)
        many = reverse("admin:review-bulk", args=["purge"])
        assert client.post(many, {"uuid": "../../x"}).status_code == 404
        none = reverse("admin:review-bulk", args=["none"])
        assert client.post(none).status_code == 404
