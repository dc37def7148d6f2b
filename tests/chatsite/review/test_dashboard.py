"""The admin's first page: the site's figures, who sees them, what they cost."""

import re
from datetime import UTC, date, datetime, timedelta

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from chatsite.review import site_figures
from chatsite.turns.models import Turn
from memory import transcript
from memory.models import ModelCall, Summary
from tests.memory.scenes import plant, say

FIRST = date(2026, 3, 28)
NOON = datetime(2026, 3, 30, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def no_cache():
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def old(alice):
    """A conversation of Alice that is older than the days that are looked at."""
    made = transcript.create_conversation(alice, title="SECRET title")
    plant(made, created_at=NOON - timedelta(days=60))
    return made


def call(conversation, at=NOON, **values):
    fields = {"purpose": "reply", "sha256": "0" * 64, "model": "m"}
    fields |= {"tokens_estimated": 100, "total_ms": 1000, **values}
    row = ModelCall.objects.create(conversation=conversation, **fields)
    plant(row, created_at=at)
    return row


def compact(conversation, version, at=NOON, **values):
    fields = {"first_seq": 1, "last_seq": 2, "policy_hash": "p", "model": "m"}
    fields |= {"status": "superseded", "tokens_before": 1000, "tokens_after": 400}
    fields |= {"trigger": {"kind": "tokens"}, "ms": 500, **values}
    row = Summary.objects.create(conversation=conversation, version=version, **fields)
    plant(row, created_at=at)
    return row


def days():
    """The four days from FIRST; NOON is on the third of them."""
    return list(site_figures.read_days(FIRST, 4).values())


class TestDays:
    def test_figures_count_compactions_and_failures_on_their_days(self, old):
        compact(old, 1)
        compact(old, 2, at=NOON - timedelta(days=2))
        compact(old, 3, status="failed")
        compact(old, 4, status="rejected")
        compact(old, 5, at=NOON + timedelta(days=2))
        assert [(day.summaries, day.failed_summaries) for day in days()] == [
            *((1, 0), (0, 0), (1, 2), (0, 0))
        ]

    def test_figures_leave_out_edited_and_restored_versions(self, old):
        compact(old, 1, trigger={"kind": "edit"})
        compact(old, 2, trigger={"kind": "restore"})
        compact(old, 3, trigger={"kind": "manual"})
        assert sum(day.summaries for day in days()) == 1

    @pytest.mark.parametrize(
        ("left", "median"), [([100], 0.1), ([100, 300], 0.2), ([500, 100, 200], 0.2)]
    )
    def test_the_median_is_the_middle_or_the_mean_of_both(self, old, left, median):
        for version, tokens in enumerate(left, start=1):
            compact(old, version, tokens_after=tokens)
        found = days()
        assert found[2].size == pytest.approx(median)
        assert found[1].size is None

    @pytest.mark.parametrize(("count", "rank"), [(1, 1), (19, 19), (20, 19), (40, 38)])
    def test_the_percentile_is_the_nearest_rank(self, old, count, rank):
        for n in range(1, count + 1):
            call(old, total_ms=n * 50)
        assert days()[2].reply_ms == rank * 50

    def test_failed_requests_say_nothing_of_the_latency(self, old):
        call(old, total_ms=90_000, error="timeout")
        assert days()[2].reply_ms is None

    def test_a_day_is_one_of_the_sites_zone_also_when_clocks_change(self, old):
        # There 2026-03-29 begins at 23:00 UTC and has 23 hours.
        with timezone.override("Europe/Berlin"):
            compact(old, 1, at=datetime(2026, 3, 28, 22, 30, tzinfo=UTC))
            compact(old, 2, at=datetime(2026, 3, 28, 23, 30, tzinfo=UTC))
            compact(old, 3, at=datetime(2026, 3, 29, 22, 30, tzinfo=UTC))
            found = days()
        assert [day.summaries for day in found] == [1, 1, 1, 0]

    def test_figures_sum_the_tokens_of_all_requests(self, old, settings):
        settings.PRICE_INPUT, settings.PRICE_OUTPUT = 1.0, 2.0
        call(old, tokens_input=70, tokens_output=7)
        call(old)
        call(old, purpose="summary", model="demo", tokens_input=5, tokens_output=1)
        day = days()[2]
        assert (day.requests, day.read, day.written) == (3, 175, 8)
        # The demo model costs nothing.
        assert day.dollars == pytest.approx((170 + 2 * 7) / 1_000_000)

    def test_a_request_that_failed_and_reported_nothing_cost_nothing(self, old):
        call(old, error="timeout")
        call(old, error="length", tokens_input=9)
        assert days()[2].read == 9

    def test_a_reply_without_a_report_counts_by_its_own_length(self, old):
        made = say(old, "Hello")
        plant(made, created_at=NOON)
        day = days()[2]
        assert day.read == made.tokens_estimated
        assert day.written == made.message.tokens > 0

    def test_copies_of_a_branch_or_an_import_are_not_counted_again(self, alice):
        copy = transcript.create_conversation(alice)
        plant(copy, created_at=NOON + timedelta(hours=1))
        call(copy)
        compact(copy, 1)
        day = days()[2]
        assert (day.requests, day.summaries) == (0, 0)

    def test_turns_that_failed_are_counted(self, old):
        made = say(old, "Hello")
        turn = Turn.objects.create(
            conversation=old,
            user_message=made.message,
            reply_seq=2,
            state=Turn.State.TRUNCATED,
        )
        plant(turn, created_at=NOON)
        assert [day.failing_turns for day in days()] == [0, 0, 1, 0]

    def test_figures_take_as_many_queries_for_many_rows_as_for_few(self, old):
        call(old)
        with CaptureQueriesContext(connection) as few:
            days()
        for n in range(1, 8):
            call(old, model=f"m{n}")
            compact(old, n)
        with CaptureQueriesContext(connection) as many:
            days()
        assert len(many) == len(few) <= 7


class TestFigures:
    def test_figures_count_stopped_compactions_and_gaps(self, old, alice):
        plant(old, compaction_failures=3)
        compact(old, 1, status="active", first_seq=1, last_seq=4)
        found = site_figures.read_figures(7)
        assert (found.stopped, found.gaps) == (1, 0)
        compact(old, 2, status="active", first_seq=6, last_seq=8)
        again = transcript.create_conversation(alice)
        compact(again, 1, status="active", first_seq=1, last_seq=4)
        compact(again, 2, status="active", first_seq=3, last_seq=8)
        cache.clear()
        assert site_figures.read_figures(7).gaps == 2

    def test_figures_are_cached_for_a_while(self, old):
        site_figures.read_figures(7)
        compact(old, 1, at=timezone.now())
        assert site_figures.read_figures(7).total.summaries == 0
        cache.clear()
        assert site_figures.read_figures(7).total.summaries == 1

    def test_the_days_add_up(self, old):
        now = timezone.now()
        for n in range(6):
            at = now - timedelta(days=n % 3)
            call(old, at=at, total_ms=100 * n, tokens_input=n)
            compact(old, n + 1, at=at, tokens_after=100 * n)
        compact(old, 9, at=now - timedelta(days=1), status="failed")
        found = site_figures.read_figures(7)
        assert len(found.days) == 7
        total = found.total
        assert (total.summaries, total.failed_summaries) == (6, 1)
        assert (total.read, total.reply_ms) == (15, 500)
        assert total.size == pytest.approx(0.25)


def read_tasks(client):
    """The names of the tasks that the admin begins with; their pages open."""
    page = client.get(reverse("admin:index")).text
    tasks = page.partition('class="review-tasks"')[2].partition("</nav>")[0]
    found = re.findall(r'<a href="([^"]+)">([^<]+)</a>', tasks)
    assert all(client.get(url).status_code == 200 for url, _ in found)
    return [name for _, name in found]


class TestDashboard:
    def test_dashboard_is_shown_to_staff_who_see_numbers(self, client, staff_with, old):
        client.force_login(staff_with("metadata"))
        text = client.get(reverse("admin:index")).content.decode()
        assert "review-dashboard" in text
        assert "SECRET" not in text

    def test_page_begins_with_the_tasks_that_one_has_rights_for(
        self, client, staff_with, staff
    ):
        client.force_login(staff)
        assert read_tasks(client) == [
            *("Review queue", "Conversations", "Costs", "People", "Settings")
        ]
        client.force_login(staff_with("metadata"))
        tasks = read_tasks(client)
        assert "Conversations" in tasks
        assert "Settings" not in tasks

    def test_page_tells_superusers_which_model_ends(
        self, client, staff_with, staff, settings, monkeypatch
    ):
        ends = {"gpt-x": date(2099, 1, 14)}
        monkeypatch.setattr("chatsite.llm.known_models._DATES", ends)
        settings.OPENAI_API_KEY, settings.CHAT_MODEL = "sk-x", "gpt-x"
        client.force_login(staff)
        text = client.get(reverse("admin:index")).text
        assert "gpt-x is shut down by OpenAI on 2099-01-14" in text
        client.force_login(staff_with("metadata"))
        assert "2099-01-14" not in client.get(reverse("admin:index")).text

    def test_dashboard_is_hidden_from_other_staff(self, client, django_user_model):
        client.force_login(django_user_model.objects.create_user("new", is_staff=True))
        text = client.get(reverse("admin:index")).content.decode()
        assert "review-dashboard" not in text
        # Who has no right yet reads whom to ask, there and where one is missing.
        assert "Ask one of its superusers" in text
        answer = client.get(reverse("admin:memory_conversation_changelist"))
        assert answer.status_code == 403
        assert "give rights to staff" in answer.content.decode()

    def test_index_names_no_superuser_to_staff_with_rights(self, client, staff_with):
        client.force_login(staff_with("metadata"))
        text = client.get(reverse("admin:index")).content.decode()
        assert "Ask one of its superusers" not in text

    def test_an_empty_site_has_no_row(self, reviewer):
        text = reviewer.get(reverse("admin:index")).content.decode()
        assert '<th scope="row">20' not in text
        assert "in the last 30 days" in text

    @pytest.mark.parametrize(
        ("asked", "shown", "rows"),
        [("7", 7, 2), ("90", 90, 4), ("8", 30, 3), ("never", 30, 3)],
    )
    def test_the_range_is_chosen(self, reviewer, old, asked, shown, rows):
        for days in (0, 6, 29, 89):
            call(old, at=timezone.now() - timedelta(days=days))
        page = reviewer.get(reverse("admin:index"), {"days": asked})
        text = page.content.decode()
        assert text.count('<th scope="row">20') == rows
        assert f'<a href="?days={shown}" aria-current="true">' in text

    def test_a_day_is_a_row_and_the_latest_is_first(self, reviewer, old):
        compact(old, 1, at=timezone.now())
        call(old, at=timezone.now(), total_ms=1500, tokens_input=4000)
        text = reviewer.get(reverse("admin:index")).content.decode()
        first = text[text.index("<tbody>") : text.index("</tr>", text.index("<tbody>"))]
        assert timezone.localdate().isoformat() in first
        for cell in ("1", "40\u00a0%", "1.5 s", "4,000"):
            assert f"<td>{cell}</td>" in first

    def test_the_page_asks_little_within_a_minute(self, reviewer, old):
        url = reverse("admin:index")
        reviewer.get(url)
        with CaptureQueriesContext(connection) as asked:
            reviewer.get(url)
        tables = ("memory_modelcall", "memory_summary", "chat_turn")
        assert not [q for q in asked if any(f'"{t}"' in q["sql"] for t in tables)]

    def test_money_needs_prices(self, reviewer, old, settings):
        call(old, at=timezone.now(), tokens_input=2_000_000, tokens_output=0)
        url = reverse("admin:index")
        assert "$" not in reviewer.get(url).content.decode()
        cache.clear()
        settings.PRICE_INPUT, settings.PRICE_OUTPUT = 1.5, 6.0
        assert "$3.00" in reviewer.get(url).content.decode()

    def test_an_app_has_its_list_alone(self, reviewer):
        text = reviewer.get(reverse("admin:app_list", args=["memory"])).content.decode()
        assert "review-dashboard" not in text
