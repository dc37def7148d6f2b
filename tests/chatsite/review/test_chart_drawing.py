"""Drawing: from values to an SVG that says what the values are."""

from xml.etree import ElementTree

import pytest
from django.template.loader import render_to_string
from django.utils import translation

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
def test_an_axis_has_few_round_numbers_and_reaches_the_top(top, expected):
    assert find_ticks(top) == expected


def test_what_is_not_counted_has_ticks_between_whole_numbers():
    assert find_ticks(0.7, whole=False) == [0, 0.2, 0.4, 0.6, 0.8]


def test_numbers_are_parted_by_thousands_and_have_their_unit():
    assert [show(n) for n in (0, 1234567, 8.5, 0.125, None)] == [
        *("0", "1,234,567", "8.5", "0.12", "–")
    ]
    assert show(3, "s") == "3\u00a0s"


def test_no_more_labels_are_chosen_than_there_is_room_for():
    assert list(spread(30, 6)) == [0, 5, 10, 15, 20, 25]
    assert list(spread(2, 6)) == [0, 1]


def test_points_stand_where_their_values_are():
    chart = lines([0, 50, 100])
    dots = chart.lines[0]["dots"]
    assert float(dots[0]["y"]) == chart.plot.bottom
    assert float(dots[2]["y"]) == chart.plot.top
    assert float(dots[1]["y"]) == (chart.plot.top + chart.plot.bottom) / 2
    xs = [float(dot["x"]) for dot in dots]
    assert xs[1] - xs[0] == pytest.approx(xs[2] - xs[1], abs=0.2)


def test_a_line_is_broken_where_nothing_is_known():
    path = lines([1, 2, None, 3]).lines[0]["path"]
    assert [step[0] for step in path.split() if step[0].isalpha()] == ["M", "L", "M"]


def test_every_chart_can_be_heard_and_read_as_a_table():
    tree = parse(lines([1, 2]))
    svg = picture(tree)
    assert svg.find("title").text == "Title"
    assert svg.find("desc").text == "Words"
    ids = {each.get("id") for each in svg}
    assert set(svg.get("aria-labelledby").split()) <= ids
    rows = tree.find(".//details").findall(".//tbody/tr")
    assert [row.find("th").text for row in rows] == ["1", "2"]


def test_it_needs_no_inline_style_or_script():
    tree = parse(lines([1, 2], level=(3, "limit"), marks=[(0.5, "v1")], mark_label="f"))
    for each in tree.iter():
        assert each.tag not in ("style", "script")
        assert not {name for name in each.attrib if name in ("style", "fill", "stroke")}


def test_lines_are_told_apart_without_their_colours():
    series = [Series("main", "a", [1], "round"), Series("second", "b", [2], "square")]
    tree = parse(draw_lines("c", "T", "D", series, ["1"], table=Table()))
    shapes = [dot[1].tag for dot in named(picture(tree), "chart-dot")]
    assert shapes == ["circle", "rect"]
    keys = tree.find(".//ul[@class='chart-keys']")
    assert [" ".join(key.itertext()).split() for key in keys] == [["a"], ["b"]]


def test_a_limit_and_compactions_are_drawn_and_named():
    chart = lines([10, 20], level=(40, "limit"), marks=[(0.5, "v1: #1–#2")])
    tree = parse(chart)
    (level,) = named(picture(tree), "chart-level")
    assert float(level.get("y1")) == chart.plot.top
    (mark,) = named(picture(tree), "chart-mark")
    assert mark.find("title").text == "v1: #1–#2"
    dots = [float(dot["x"]) for dot in chart.lines[0]["dots"]]
    assert dots[0] < float(mark.find("line").get("x1")) < dots[1]


def test_failed_ones_lie_on_top_of_the_others_and_are_hatched():
    series = [Series("main", "made", [3, 0]), Series("bad", "failed", [1, 0])]
    chart = draw_bars("b", "T", "D", series, ["1", "2"], table=Table())
    made, failed = chart.bars
    lower_end = float(failed["y"]) + float(failed["height"])
    assert lower_end == pytest.approx(float(made["y"]), abs=0.2)
    bars = named(picture(parse(chart)), "chart-bar")
    assert [bar.get("fill") for bar in bars] == [None, "url(#b-hatch)"]


def test_the_longest_horizontal_bar_fills_the_room():
    rows = [("alice", 200, "200"), ("bob", 50, "50")]
    one, other = draw_rows("r", "T", "D", rows, table=Table()).rows
    width = 4 * float(other["width"])
    assert float(one["width"]) == pytest.approx(width, abs=0.3)


def test_nothing_to_draw_is_said_in_words():
    tree = parse(Chart("empty", "Title", words="Nothing yet."))
    assert tree.find("svg") is None
    assert tree.find("p").text == "Nothing yet."


def test_names_stay_text():
    tree = parse(
        draw_rows("r", HOSTILE, HOSTILE, [(HOSTILE, 1, HOSTILE)], table=Table())
    )
    assert not list(tree.iter("script"))
    assert picture(tree).find("title").text == HOSTILE


def test_coordinates_are_numbers_in_every_language():
    with translation.override("de"):
        tree = parse(lines([1.5, 2.5, 4000]))
    for line in tree.iter("line"):
        assert all(
            float(value) >= 0 for name, value in line.attrib.items() if name != "class"
        )
