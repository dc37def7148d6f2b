"""Figures of the site and of a conversation: the numbers, who sees them, their cost,
and the SVG that says what they are.
"""

from datetime import UTC, date, datetime, timedelta
from xml.etree import ElementTree

import pytest
from django.core.cache import cache
from django.db import connection
from django.template.loader import render_to_string
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone, translation

from chatsite.pages.presenters import savings
from chatsite.review.charts import conversation as chart_of
from chatsite.review.charts import site_metrics
from chatsite.review.charts.days import Days, DaysForm
from chatsite.review.charts.drawing import (
    Chart,
    Series,
    Table,
    draw_bars,
    draw_lines,
    draw_rows,
    find_ticks,
    show,
    spread,
)
from memory import transcript
from memory.engine.policy import Policy
from memory.models import Conversation, ModelCall, Summary
from tests.memory.scenes import plant, say, summarise, talk

DAYS = Days(date(2026, 3, 28), date(2026, 3, 31))
NOON = datetime(2026, 3, 30, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def no_cache():
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def old(alice):
    """A conversation of Alice that is older than the days that are looked at."""
    made = transcript.create(alice, title="SECRET title")
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


def figures():
    return site_metrics.measure(DAYS)


class TestSiteFigures:
    def test_it_counts_compactions_and_failures_on_their_days(self, old):
        compact(old, 1)
        compact(old, 2, at=NOON - timedelta(days=2))
        compact(old, 3, status="failed")
        compact(old, 4, status="rejected")
        compact(old, 5, at=NOON + timedelta(days=2))
        days = figures().days
        assert [(day.compactions, day.failed) for day in days] == [
            *((1, 0), (0, 0), (1, 2), (0, 0))
        ]

    def test_what_a_person_wrote_or_brought_back_is_no_compaction(self, old):
        compact(old, 1, trigger={"kind": "edit"})
        compact(old, 2, trigger={"kind": "restore"})
        compact(old, 3, trigger={"kind": "manual"})
        assert sum(day.compactions for day in figures().days) == 1

    @pytest.mark.parametrize(
        ("left", "median"), [([100], 0.1), ([100, 300], 0.2), ([500, 100, 200], 0.2)]
    )
    def test_the_median_is_the_middle_or_the_mean_of_both(self, old, left, median):
        for version, tokens in enumerate(left, start=1):
            compact(old, version, tokens_after=tokens)
        found = figures()
        assert found.ratio == pytest.approx(median)
        assert found.days[2].ratio == pytest.approx(median)
        assert found.days[1].ratio is None

    @pytest.mark.parametrize(("count", "rank"), [(1, 1), (19, 19), (20, 19), (40, 38)])
    def test_the_percentile_is_the_nearest_rank(self, old, count, rank):
        for n in range(1, count + 1):
            call(old, total_ms=n * 50, first_token_ms=n * 10)
        found = figures()
        assert found.reply_ms == rank * 50
        assert (found.days[2].reply_ms, found.days[2].first_ms) == (
            rank * 50,
            rank * 10,
        )

    def test_failed_requests_say_nothing_of_the_latency(self, old):
        call(old, total_ms=90_000, error="timeout")
        assert figures().reply_ms is None

    def test_a_day_is_one_of_the_sites_zone_also_when_clocks_change(self, old):
        # There 2026-03-29 begins at 23:00 UTC and has 23 hours.
        with timezone.override("Europe/Berlin"):
            compact(old, 1, at=datetime(2026, 3, 28, 22, 30, tzinfo=UTC))
            compact(old, 2, at=datetime(2026, 3, 28, 23, 30, tzinfo=UTC))
            compact(old, 3, at=datetime(2026, 3, 29, 22, 30, tzinfo=UTC))
            days = figures().days
        assert [day.compactions for day in days] == [1, 1, 1, 0]

    def test_it_sums_what_people_spent_with_each_model(self, old, alice, bob):
        call(old, tokens_input=70, tokens_output=7)
        call(old)
        call(old, purpose="summary", model="small", tokens_input=5, tokens_output=1)
        other = transcript.create(bob)
        plant(other, created_at=NOON - timedelta(days=1))
        call(other, tokens_input=3, tokens_output=2)
        found = {
            (s.user, s.model): (s.requests, s.read, s.written)
            for s in figures().spending
        }
        assert found == {
            ("alice", "m"): (2, 170, 7),
            ("alice", "small"): (1, 5, 1),
            ("bob", "m"): (1, 3, 2),
        }

    def test_a_request_that_failed_and_reported_nothing_cost_nothing(self, old):
        call(old, error="timeout")
        call(old, error="length", tokens_input=9)
        assert [s.read for s in figures().spending] == [9]

    def test_a_reply_without_a_report_counts_by_its_own_length(self, old):
        made = say(old, "Hello")
        plant(made, created_at=NOON)
        (spent,) = figures().spending
        assert spent.read == made.tokens_estimated
        assert spent.written == made.message.tokens > 0

    def test_copies_of_a_branch_or_an_import_are_not_counted_again(self, alice):
        copy = transcript.create(alice)
        plant(copy, created_at=NOON + timedelta(hours=1))
        call(copy)
        compact(copy, 1)
        found = figures()
        assert found.spending == ()
        assert sum(day.compactions for day in found.days) == 0

    def test_it_counts_who_stopped_compaction_and_where_gaps_are(self, old, alice):
        plant(old, compaction_failures=3)
        compact(old, 1, status="active", first_seq=1, last_seq=4)
        assert (figures().stopped, figures().gaps) == (1, 0)
        compact(old, 2, status="active", first_seq=6, last_seq=8)
        again = transcript.create(alice)
        compact(again, 1, status="active", first_seq=1, last_seq=4)
        compact(again, 2, status="active", first_seq=3, last_seq=8)
        assert figures().gaps == 2

    def test_it_asks_as_much_for_many_rows_as_for_few(self, old):
        call(old)
        with CaptureQueriesContext(connection) as few:
            figures()
        for n in range(1, 8):
            call(old, model=f"m{n}")
            compact(old, n)
        with CaptureQueriesContext(connection) as many:
            figures()
        assert len(many) == len(few) <= 14

    def test_they_are_kept_for_a_while(self, old):
        site_metrics.of(DAYS)
        compact(old, 1)
        assert sum(day.compactions for day in site_metrics.of(DAYS).days) == 0

    def test_today_and_the_days_before_add_up_to_the_whole(self, old):
        days, now = Days.until_today(3), timezone.now()
        for n in range(6):
            at = now - timedelta(days=n % 3)
            call(old, at=at, total_ms=100 * n, first_token_ms=10, tokens_input=n)
            compact(old, n + 1, at=at, tokens_after=100 * n)
        compact(old, 9, at=now - timedelta(days=1), status="failed")
        assert site_metrics.of(days) == site_metrics.measure(days)
        assert site_metrics.of(days).spending[0].read == 15


class TestDashboard:
    def test_those_who_see_numbers_see_the_dashboard(self, client, staff_with, old):
        client.force_login(staff_with("metadata"))
        text = client.get(reverse("admin:index")).content.decode()
        assert "desk-dashboard" in text
        assert "SECRET" not in text

    def test_it_is_for_no_one_else(self, client, django_user_model):
        client.force_login(django_user_model.objects.create_user("new", is_staff=True))
        text = client.get(reverse("admin:index")).content.decode()
        assert "desk-dashboard" not in text

    def test_an_empty_site_says_so_in_words(self, reviewer):
        text = reviewer.get(reverse("admin:index")).content.decode()
        for words in (
            "Nothing was summarised",
            *("No summary to measure", "No reply and no summary"),
            "No request to a model",
        ):
            assert words in text
        assert 'role="img"' not in text

    def test_the_range_is_chosen(self, reviewer, old):
        compact(old, 1)
        url = reverse("admin:index")
        text = reviewer.get(url, {"first": "2026-03-28", "last": "2026-03-31"})
        assert "Summaries: 1; failed: 0" in text.content.decode()
        assert "Summaries: 1;" not in reviewer.get(url).content.decode()

    @pytest.mark.parametrize(
        ("first", "last", "words"),
        [
            ("2026-03-31", "2026-03-28", "before the first"),
            ("2020-01-01", "2026-03-28", "at most 92 days"),
            ("never", "2026-03-28", "valid date"),
            ("2026-03-28", "", "required"),
        ],
    )
    def test_a_wrong_range_is_explained_and_kept(self, reviewer, first, last, words):
        response = reviewer.get(reverse("admin:index"), {"first": first, "last": last})
        text = response.content.decode()
        assert words in text
        assert f'value="{first}"' in text
        assert "last 30 days" in text

    def test_money_needs_prices(self, reviewer, old, settings):
        call(old, at=timezone.now(), tokens_input=2_000_000, tokens_output=0)
        url = reverse("admin:index")
        assert "$" not in reviewer.get(url).content.decode()
        settings.PRICE_INPUT, settings.PRICE_OUTPUT = 1.5, 6.0
        assert "$3.00" in reviewer.get(url).content.decode()

    def test_an_app_has_its_list_alone(self, reviewer):
        text = reviewer.get(reverse("admin:app_list", args=["memory"])).content.decode()
        assert "desk-dashboard" not in text

    @pytest.mark.parametrize("language", ["en", "zh-hans"])
    def test_the_days_end_today_and_browsers_can_read_them(self, language):
        with translation.override(language):
            form, days = DaysForm.read({})
            assert f'value="{days.last.isoformat()}"' in str(form["last"])
        assert (len(days), days.last) == (30, timezone.localdate())


class TestConversationFigures:
    @pytest.fixture
    def talked(self, alice):
        made = transcript.create(alice, title="SECRET title")
        calls = talk(made, 3)
        summarise(made, 1, 2)
        calls += talk(made, 2)
        plant(calls[0], tokens_input=77)
        return Conversation.objects.get(pk=made.pk)

    def draw(self, conversation):
        return chart_of.draw(conversation)

    def test_it_shows_what_was_sent_and_the_whole_transcript(self, talked):
        rows = self.draw(talked).table.rows
        calls = list(talked.model_calls.filter(purpose="reply").order_by("id"))
        expected = [77, *(each.tokens_estimated for each in calls[1:])]
        assert [int(row[2]) for row in rows] == expected
        assert [row[3] for row in rows] == ["report", *["estimate"] * 4]
        whole = sum(int(row[4]) for row in rows)
        assert whole == pytest.approx(savings.of(talked).whole, abs=5)

    def test_a_compaction_is_marked_after_the_turn_it_followed(self, talked):
        chart = self.draw(talked)
        (mark,) = chart.marks
        xs = [float(dot["x"]) for dot in chart.lines[1]["dots"]]
        assert xs[2] < float(mark["x"]) < xs[3]
        assert [row[5] for row in chart.table.rows] == ["", "", "v1: #1–#2", "", ""]

    def test_failed_compactions_are_no_marks(self, talked):
        summarise(talked, 3, 4, status="failed")
        assert len(self.draw(talked).marks) == 1

    @pytest.mark.parametrize(
        ("policy", "tokens", "words"),
        [
            ({"trigger": ("tokens", 900), "keep": ("tokens", 9)}, 900, "900 tokens"),
            ({"preset": "deepagents"}, 8500, "8,500 tokens"),
            ({"preset": "langgraph"}, None, "7 messages"),
            ({"enabled": False}, None, "never summarised"),
            ({"adaptive": True}, None, "4,000 to 10,000"),
        ],
    )
    def test_the_limit_is_a_line_or_words(self, policy, tokens, words):
        limit = chart_of.limit_of(Policy(**policy), 10_000)
        assert limit.tokens == tokens
        assert words in limit.text

    def test_many_turns_are_drawn_in_groups(self, talked, monkeypatch):
        monkeypatch.setattr(chart_of, "MAX_POINTS", 3)
        rows = self.draw(talked).table.rows
        assert [row[0] for row in rows] == ["1–2", "3–4", "5"]
        calls = list(talked.model_calls.filter(purpose="reply").order_by("id"))
        assert int(rows[0][2]) == max(77, calls[1].tokens_estimated)

    def test_an_empty_conversation_says_so(self, alice, reviewer):
        empty = transcript.create(alice)
        page = reviewer.get(reverse("admin:desk-figures", args=[empty.pk]))
        assert "nothing to draw" in page.content.decode()

    def test_the_page_shows_numbers_and_no_word(self, client, staff_with, talked):
        client.force_login(staff_with("metadata"))
        page = client.get(reverse("admin:desk-figures", args=[talked.pk]))
        text = page.content.decode()
        assert "chart-line" in text
        assert "SECRET" not in text
        assert "Text 1" not in text

    def test_the_page_is_linked_and_closed_to_others(
        self, client, reviewer, talked, bob
    ):
        url = reverse("admin:desk-figures", args=[talked.pk])
        page = reverse("admin:memory_conversation_change", args=[talked.pk])
        assert url in reviewer.get(page).content.decode()
        client.force_login(bob)
        assert client.get(url).status_code == 302


HOSTILE = '<script>alert(1)</script>"&'


def parse(chart):
    """The figure that the template makes of a chart, as a tree: it has to be XML."""
    text = render_to_string("admin/desk/_chart.html", {"chart": chart})
    return ElementTree.fromstring(text.strip())  # noqa: S314


def named(tree, name):
    return [each for each in tree.iter() if each.get("class", "").split()[:1] == [name]]


def lines(values, **options):
    series = [Series("main", "sent", values)]
    labels = [str(n + 1) for n in range(len(values))]
    table = Table(("Turn",), tuple((label,) for label in labels))
    return draw_lines("c", "Title", "Words", series, labels, table=table, **options)


def picture(tree):
    return next(each for each in tree.iter("svg") if each.get("role") == "img")


class TestDrawing:
    @pytest.mark.parametrize(
        ("top", "expected"),
        [
            (0, [0, 1]),
            (3, [0, 1, 2, 3]),
            (7, [0, 2, 4, 6, 8]),
            (4000, [0, 1000, 2000, 3000, 4000]),
            (123_456, [0, 50_000, 100_000, 150_000]),
        ],
    )
    def test_an_axis_has_few_round_numbers_and_reaches_the_top(self, top, expected):
        assert find_ticks(top) == expected

    def test_what_is_not_counted_has_ticks_between_whole_numbers(self):
        assert find_ticks(0.7, whole=False) == [0, 0.2, 0.4, 0.6, 0.8]

    def test_numbers_are_parted_by_thousands_and_have_their_unit(self):
        assert [show(n) for n in (0, 1234567, 8.5, 0.125, None)] == [
            *("0", "1,234,567", "8.5", "0.12", "–")
        ]
        assert show(3, "s") == "3\u00a0s"

    def test_no_more_labels_are_chosen_than_there_is_room_for(self):
        assert list(spread(30, 6)) == [0, 5, 10, 15, 20, 25]
        assert list(spread(2, 6)) == [0, 1]

    def test_points_stand_where_their_values_are(self):
        chart = lines([0, 50, 100])
        dots = chart.lines[0]["dots"]
        assert float(dots[0]["y"]) == chart.plot.bottom
        assert float(dots[2]["y"]) == chart.plot.top
        assert float(dots[1]["y"]) == (chart.plot.top + chart.plot.bottom) / 2
        xs = [float(dot["x"]) for dot in dots]
        assert xs[1] - xs[0] == pytest.approx(xs[2] - xs[1], abs=0.2)

    def test_a_line_is_broken_where_nothing_is_known(self):
        path = lines([1, 2, None, 3]).lines[0]["path"]
        assert [step[0] for step in path.split() if step[0].isalpha()] == [
            "M",
            "L",
            "M",
        ]

    def test_every_chart_can_be_heard_and_read_as_a_table(self):
        tree = parse(lines([1, 2]))
        svg = picture(tree)
        assert svg.find("title").text == "Title"
        assert svg.find("desc").text == "Words"
        ids = {each.get("id") for each in svg}
        assert set(svg.get("aria-labelledby").split()) <= ids
        rows = tree.find(".//details").findall(".//tbody/tr")
        assert [row.find("th").text for row in rows] == ["1", "2"]

    def test_it_needs_no_inline_style_or_script(self):
        tree = parse(
            lines([1, 2], level=(3, "limit"), marks=[(0.5, "v1")], mark_label="f")
        )
        for each in tree.iter():
            assert each.tag not in ("style", "script")
            assert not {
                name for name in each.attrib if name in ("style", "fill", "stroke")
            }

    def test_lines_are_told_apart_without_their_colours(self):
        series = [
            Series("main", "a", [1], "round"),
            Series("second", "b", [2], "square"),
        ]
        tree = parse(draw_lines("c", "T", "D", series, ["1"], table=Table()))
        shapes = [dot[1].tag for dot in named(picture(tree), "chart-dot")]
        assert shapes == ["circle", "rect"]
        keys = tree.find(".//ul[@class='chart-keys']")
        assert [" ".join(key.itertext()).split() for key in keys] == [["a"], ["b"]]

    def test_a_limit_and_compactions_are_drawn_and_named(self):
        chart = lines([10, 20], level=(40, "limit"), marks=[(0.5, "v1: #1–#2")])
        tree = parse(chart)
        (level,) = named(picture(tree), "chart-level")
        assert float(level.get("y1")) == chart.plot.top
        (mark,) = named(picture(tree), "chart-mark")
        assert mark.find("title").text == "v1: #1–#2"
        dots = [float(dot["x"]) for dot in chart.lines[0]["dots"]]
        assert dots[0] < float(mark.find("line").get("x1")) < dots[1]

    def test_failed_ones_lie_on_top_of_the_others_and_are_hatched(self):
        series = [Series("main", "made", [3, 0]), Series("bad", "failed", [1, 0])]
        chart = draw_bars("b", "T", "D", series, ["1", "2"], table=Table())
        made, failed = chart.bars
        lower_end = float(failed["y"]) + float(failed["height"])
        assert lower_end == pytest.approx(float(made["y"]), abs=0.2)
        bars = named(picture(parse(chart)), "chart-bar")
        assert [bar.get("fill") for bar in bars] == [None, "url(#b-hatch)"]

    def test_the_longest_horizontal_bar_fills_the_room(self):
        rows = [("alice", 200, "200"), ("bob", 50, "50")]
        one, other = draw_rows("r", "T", "D", rows, table=Table()).rows
        width = 4 * float(other["width"])
        assert float(one["width"]) == pytest.approx(width, abs=0.3)

    def test_nothing_to_draw_is_said_in_words(self):
        tree = parse(Chart("empty", "Title", message="Nothing yet."))
        assert tree.find("svg") is None
        assert tree.find("p").text == "Nothing yet."

    def test_names_stay_text(self):
        tree = parse(
            draw_rows("r", HOSTILE, HOSTILE, [(HOSTILE, 1, HOSTILE)], table=Table())
        )
        assert not list(tree.iter("script"))
        assert picture(tree).find("title").text == HOSTILE

    def test_coordinates_are_numbers_in_every_language(self):
        with translation.override("de"):
            tree = parse(lines([1.5, 2.5, 4000]))
        for line in tree.iter("line"):
            assert all(
                float(value) >= 0
                for name, value in line.attrib.items()
                if name != "class"
            )
