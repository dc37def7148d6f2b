"""Places where apps show something: what a part is given, and in which order."""

from collections import defaultdict

import pytest
from django.template import Context, Template
from django.utils.html import format_html
from django.utils.safestring import mark_safe

from chatsite import slots


@pytest.fixture(autouse=True)
def _nothing_registered(monkeypatch):
    monkeypatch.setattr(slots, "_parts", defaultdict(list))
    monkeypatch.setattr(slots, "_static_files", defaultdict(list))


def draw_in_template(text, **values):
    return Template("{% load chat_tags %}" + text).render(Context(values))


def test_a_part_gets_the_values_that_it_names():
    slots.register("here", lambda seq: format_html("<b>{}</b>", seq))
    slots.register("here", lambda name, is_loud=False: name.upper() * is_loud)
    slots.register("there", lambda: "elsewhere")
    assert slots.draw("here", seq=1, name="a", more=2) == "<b>1</b>"
    assert slots.draw("here", seq=1, name="a", is_loud=True) == "<b>1</b>A"
    assert slots.draw_each("here", seq=1, name="a") == ["<b>1</b>"]


def test_a_text_is_escaped_and_html_is_not():
    slots.register("here", lambda: "<i>")
    slots.register("here", lambda: mark_safe("<br>"))
    assert slots.draw("here") == "&lt;i&gt;<br>"


def test_a_part_that_lacks_a_value_raises_its_error():
    slots.register("here", lambda seq: str(seq))
    with pytest.raises(TypeError, match="seq"):
        slots.draw("here")


def test_a_template_gets_the_values_of_the_page():
    slots.register("here", "chat/_status.html")
    shown = draw_in_template("{% slot 'here' %}", message="<Saved>")
    assert "&lt;Saved&gt;" in shown


def test_an_empty_place_shows_nothing():
    assert slots.draw_each("here") == []
    assert draw_in_template("a{% slot 'here' seq=1 as shown %}{{ shown }}b") == "ab"


def test_static_files_are_of_one_place():
    slots.add_static_file("a/a.css", "list")
    slots.add_static_file("b/b.css", "dialog")
    assert slots.static_files("list") == ["a/a.css"]
    assert slots.static_files("bar") == []
    shown = draw_in_template("{% first_use 'dialog' %}")
    assert shown.endswith("b.css")


def test_values_of_messages_are_read_for_all_parts():
    def read(conversation, first, end):
        return {first: conversation}

    slots.register("message.below", lambda: "", rows={"stars": read})
    slots.register("message.menu", lambda: "", columns={"length": 3})
    assert slots.read_message_rows("c", 1, 5) == {"stars": {1: "c"}}
    assert slots.message_columns() == {"length": 3}
