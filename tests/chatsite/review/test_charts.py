"""The picture of a conversation, and the SVG that says what it is."""

from xml.etree import ElementTree

import pytest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import translation

from chatsite.pages.presenters import savings
from chatsite.review.charts import conversation as chart_of
from chatsite.review.charts import drawing
from chatsite.review.charts.drawing import (
    Chart,
    ChartTable,
    Series,
    draw_lines,
    find_ticks,
    spread_places,
    to_digits,
)
from memory import transcript
from memory.engine.policy import Policy
from memory.models import Conversation
from tests.memory.scenes import plant, summarise, talk


class TestConversationFigures:
    @pytest.fixture
    def talked(self, alice):
        made = transcript.create_conversation(alice, title="SECRET title")
        calls = talk(made, 3)
        summarise(made, 1, 2)
        calls += talk(made, 2)
        plant(calls[0], tokens_input=77)
        return Conversation.objects.get(pk=made.pk)

    def draw(self, conversation):
        return chart_of.draw_prompts(conversation)

    def test_chart_shows_sent_tokens_and_the_whole_transcript(self, talked):
        rows = self.draw(talked).table.rows
        calls = list(talked.model_calls.filter(purpose="reply").order_by("id"))
        expected = [77, *(each.tokens_estimated for each in calls[1:])]
        assert [int(row[2]) for row in rows] == expected
        assert [row[3] for row in rows] == ["report", *["estimate"] * 4]
        whole = sum(int(row[4]) for row in rows)
        assert whole == pytest.approx(savings.measure_savings(talked).whole, abs=5)

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
        limit = chart_of.describe_limit(Policy(**policy), 10_000)
        assert limit.tokens == tokens
        assert words in limit.text

    def test_many_turns_are_drawn_in_groups(self, talked, monkeypatch):
        monkeypatch.setattr(drawing, "MAX_POINTS", 3)
        rows = self.draw(talked).table.rows
        assert [row[0] for row in rows] == ["1–2", "3–4", "5"]
        calls = list(talked.model_calls.filter(purpose="reply").order_by("id"))
        assert int(rows[0][2]) == max(77, calls[1].tokens_estimated)

    def test_an_empty_conversation_says_so(self, alice, reviewer):
        empty = transcript.create_conversation(alice)
        page = reviewer.get(reverse("admin:review-figures", args=[empty.pk]))
        assert "nothing to draw" in page.content.decode()

    def test_the_page_shows_numbers_and_no_word(self, client, staff_with, talked):
        client.force_login(staff_with("metadata"))
        page = client.get(reverse("admin:review-figures", args=[talked.pk]))
        text = page.content.decode()
        assert "chart-line" in text
        assert "SECRET" not in text
        assert "Text 1" not in text

    def test_the_page_is_linked_and_closed_to_others(
        self, client, reviewer, talked, bob
    ):
        url = reverse("admin:review-figures", args=[talked.pk])
        page = reverse("admin:memory_conversation_change", args=[talked.pk])
        assert url in reviewer.get(page).content.decode()
        client.force_login(bob)
        assert client.get(url).status_code == 302


HOSTILE = '<script>alert(1)</script>"&'


def parse(chart):
    """The figure that the template makes of a chart, as a tree: it has to be XML."""
    text = render_to_string("admin/review/_chart.html", {"chart": chart})
    return ElementTree.fromstring(text.strip())  # noqa: S314


def named(tree, name):
    return [each for each in tree.iter() if each.get("class", "").split()[:1] == [name]]


def lines(values, **options):
    series = [Series("main", "sent", values)]
    labels = [str(n + 1) for n in range(len(values))]
    table = ChartTable(("Turn",), tuple((label,) for label in labels))
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

    def test_numbers_are_parted_by_thousands(self):
        assert [to_digits(n) for n in (0, 1234567, 8.5, 0.125, None)] == [
            *("0", "1,234,567", "8.5", "0.12", "–")
        ]

    def test_number_of_labels_is_limited_by_their_room(self):
        assert list(spread_places(30, 6)) == [0, 5, 10, 15, 20, 25]
        assert list(spread_places(2, 6)) == [0, 1]

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

    def test_chart_needs_no_inline_style_or_script(self):
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
        tree = parse(draw_lines("c", "T", "D", series, ["1"], table=ChartTable()))
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

    def test_empty_chart_shows_a_message(self):
        tree = parse(Chart("empty", "Title", message="Nothing yet."))
        assert tree.find("svg") is None
        assert tree.find("p").text == "Nothing yet."

    def test_names_stay_text(self):
        series = [Series("main", HOSTILE, [1])]
        table = ChartTable((HOSTILE,), ((HOSTILE,),))
        tree = parse(draw_lines("c", HOSTILE, HOSTILE, series, [HOSTILE], table=table))
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
