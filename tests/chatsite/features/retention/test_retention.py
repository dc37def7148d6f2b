"""Retention deletes old rows in small batches; others, and those that users
keep, stay.
"""

from datetime import datetime, timedelta
from io import StringIO

import pytest
from axes.models import AccessAttempt
from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.db.models import F, QuerySet
from django.urls import reverse
from django.utils import timezone

from chatsite.features.retention import nightly, services
from chatsite.features.retention.models import RetentionRun
from chatsite.review.models import AccessEvent, Tombstone
from memory import library, transcript
from memory.models import Conversation

from ...scenes import signed_in

pytestmark = pytest.mark.django_db
OLD, YOUNG = timedelta(days=31), timedelta(days=29)
SETTINGS = (
    *("RETENTION_DAYS", "RETENTION_LOGIN_DAYS"),
    *("RETENTION_LOG_DAYS", "RETENTION_RECORD_DAYS"),
)


@pytest.fixture
def limits(settings):
    for name in SETTINGS:
        setattr(settings, name, 30)


def make_conversation(owner, age, **values):
    made = transcript.create_conversation(owner)
    values = {"updated_at": timezone.now() - age, **values}
    Conversation.objects.filter(pk=made.pk).update(**values)
    return made.pk


def make_rows(staff, age):
    """Make a row of each table that records events."""
    at = timezone.now() - age
    Session.objects.create(session_key=str(age), session_data="", expire_date=at)
    attempt = AccessAttempt.objects.create(username=str(age), failures_since_start=1)
    access = AccessEvent.objects.create(username="staff", action="view")
    stone = Tombstone.objects.create(
        account=age.days,
        begun_at=at,
        **dict.fromkeys(("messages", "summaries", "model_calls", "turns"), 0),
    )
    entry = LogEntry.objects.create(user=staff, object_repr="x", action_flag=1)
    for row, column in (
        (attempt, "attempt_time"),
        (access, "created_at"),
        (stone, "created_at"),
        (entry, "action_time"),
    ):
        QuerySet(type(row)).filter(pk=row.pk).update(**{column: at})


def run_all():
    run = services.begin_run()
    while services.delete_batch(run):
        pass
    run.refresh_from_db()
    return run


def list_alive():
    return {*Conversation.objects.filter(deleted_at=None).values_list("pk", flat=True)}


def test_conversations_that_are_not_used_go_and_others_stay(limits, alice):
    now = timezone.now()
    gone = make_conversation(alice, OLD)
    kept = {
        make_conversation(alice, YOUNG),
        make_conversation(alice, OLD, pinned_at=now),
        make_conversation(alice, OLD, temporary_until=now + OLD),
        make_conversation(alice, OLD, staged_by="import"),
    }
    assert run_all().conversations == 1
    assert list_alive() == kept
    assert library.purge_deleted() == 0
    # Seven days later.
    rows = Conversation.objects.filter(pk=gone)
    rows.update(deleted_at=F("deleted_at") - timedelta(days=7, minutes=11))
    assert library.purge_deleted() == 1
    assert not Conversation.objects.filter(pk=gone).exists()


def test_conversations_are_erased_at_once_without_days_to_undo(limits, alice, settings):
    settings.RETENTION_UNDO_DAYS = 0
    make_conversation(alice, OLD)
    run_all()
    assert library.purge_deleted() == 1


def test_clock_of_a_process_decides_nothing(limits, alice, monkeypatch):
    made = make_conversation(alice, YOUNG)
    ahead = timezone.now() + timedelta(days=60)
    monkeypatch.setattr(timezone, "now", lambda: ahead)
    assert run_all().conversations == 0
    assert list_alive() == {made}
    assert RetentionRun.objects.get().day < ahead.date()


def test_list_of_the_owner_offers_to_undo_own_deletions_only(limits, alice):
    make_conversation(alice, OLD)
    own = Conversation.objects.get(pk=make_conversation(alice, YOUNG))
    run_all()
    library.delete_conversation(own)
    assert [*library.deleted_lately(alice)] == [own]


def test_other_old_rows_are_deleted(limits, staff):
    make_rows(staff, OLD)
    make_rows(staff, YOUNG)
    # A session is too old once it has ended, and both of these have.
    run = run_all()
    assert (run.sessions, run.logins, run.accesses, run.records) == (2, 1, 2, 1)
    models = (AccessAttempt, AccessEvent, LogEntry, Tombstone)
    assert [QuerySet(model).count() for model in models] == [1, 1, 1, 1]


def test_expired_sessions_alone_are_deleted_without_settings(alice, staff):
    make_conversation(alice, OLD)
    make_rows(staff, OLD)
    run = run_all()
    counts = (run.conversations, run.sessions, run.logins, run.accesses, run.records)
    assert counts == (0, 1, 0, 0, 0)


def test_rows_are_deleted_a_batch_at_a_time(
    limits, alice, monkeypatch, django_assert_max_num_queries
):
    monkeypatch.setattr(services, "BATCH", 2)
    for _n in range(5):
        make_conversation(alice, OLD)
    run = services.begin_run()
    with django_assert_max_num_queries(3):
        assert services.delete_batch(run)
    assert len(list_alive()) == 3
    run_all()
    run.refresh_from_db()
    assert (run.conversations, len(list_alive())) == (5, 0)
    assert run.finished_at


def test_conversation_used_in_between_stays(limits, alice, monkeypatch):
    made = make_conversation(alice, OLD)
    find = services.OldRows.find_old
    calls = []

    def use_after_the_look(kind):
        rows = find(kind)
        calls.append(kind.name)
        if len(calls) == 2:
            Conversation.objects.filter(pk=made).update(updated_at=timezone.now())
        return rows

    monkeypatch.setattr(services.OldRows, "find_old", use_after_the_look)
    assert services.delete_batch(services.begin_run())
    assert list_alive() == {made}


class TestNight:
    @pytest.fixture
    def clock(self, monkeypatch):
        """clock(hour): the site's time of this day."""

        def set_hour(hour):
            zone = timezone.get_current_timezone()
            at = datetime(2026, 5, 4, hour, 30, tzinfo=zone)
            monkeypatch.setattr(timezone, "localtime", lambda *of: at)

        return set_hour

    def test_a_run_begins_at_night_and_once(self, clock):
        clock(12)
        assert not services.run_step()
        assert not RetentionRun.objects.exists()
        clock(3)
        services.run_step()
        assert RetentionRun.objects.get().finished_at
        services.run_step()
        assert RetentionRun.objects.count() == 1

    def test_a_run_that_was_stopped_goes_on_by_day(self, limits, clock, alice):
        make_conversation(alice, OLD)
        clock(4)
        services.begin_run()
        clock(12)
        assert services.run_step()
        assert not services.run_step()
        assert RetentionRun.objects.get().conversations == 1

    async def test_a_process_looks_now_and_then_only(self, monkeypatch):
        looks = []

        async def look():
            looks.append(1)
            return len(looks) < 3

        monkeypatch.setattr(nightly, "_run_step", look)
        monkeypatch.setattr(nightly, "_next_look", 0.0)
        for _n in range(6):
            await nightly.sweep_old()
        assert len(looks) == 3


class TestCommand:
    def run(self, *arguments):
        printed = StringIO()
        call_command("retention", *arguments, stdout=printed)
        return printed.getvalue().split("\n")

    def test_a_dry_run_counts_and_deletes_nothing(self, limits, alice):
        make_conversation(alice, OLD)
        lines = self.run("--dry-run")
        assert lines[0].split() == ["1", "conversations"]
        assert len(list_alive()) == 1
        assert not RetentionRun.objects.exists()

    def test_command_deletes_and_is_a_run(self, limits, alice):
        make_conversation(alice, OLD)
        assert self.run()[0].split() == ["1", "conversations"]
        assert not list_alive()
        assert RetentionRun.objects.get().conversations == 1

    def test_conversations_come_back_until_they_are_erased(self, limits, alice):
        old = make_conversation(alice, OLD)
        own = Conversation.objects.get(pk=make_conversation(alice, YOUNG))
        library.delete_conversation(own)
        self.run()
        assert self.run("--undo")[0].startswith("1 conversations were brought back.")
        assert list_alive() == {old}
        assert self.run("--undo")[0].startswith("0 conversations")


def test_staff_see_the_runs(reviewer):
    run_all()
    page = reviewer.get(reverse("admin:retention_retentionrun_changelist"))
    assert timezone.localdate().strftime("%b") in page.text


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", "not used for 30 days is deleted"),
        ("zh-hans", "30 天未使用的对话会被删除"),
    ],
)
def test_people_are_told_how_long(limits, alice, language, words):
    client = signed_in(alice)
    assert words in client.get("/account/", headers={"accept-language": language}).text


def test_people_are_told_nothing_where_all_is_kept(alice):
    assert "retention" not in signed_in(alice).get("/account/").text
