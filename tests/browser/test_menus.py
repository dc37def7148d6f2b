"""Entries of menus: those of the site's defaults, and with all extras."""

import pytest
from playwright.sync_api import expect

from .test_tree import say_again

pytestmark = pytest.mark.browser
MOST_OF_REPLY, MOST_OF_CONVERSATION = 8, 9
ENTRY = (
    ".menu-items > :is(a, button, .item, form, details),"
    ".menu-items > .item :is(a, button)"
)


@pytest.fixture(scope="module", params=["", "all"], ids=["defaults", "extras"])
def made(request, make_site):
    env = {"EXTRAS": request.param, "DEMO_TOKENS_PER_SECOND": "1000"}
    with make_site(**env) as running:
        yield running


def count_entries(menu):
    menu.locator(":scope > summary").click()
    expect(menu.locator(".menu-items").first).to_be_visible()
    entries = [each for each in menu.locator(ENTRY).all() if each.is_visible()]
    return [each.inner_text() for each in entries]


def test_menus_of_a_reply_and_of_a_conversation_are_short(open_page, made):
    chat = open_page(made, is_home=False)
    chat.create()
    chat.say("We are 4 people.")
    chat.say("Where are we going?")
    chat.say("And when?")
    say_again(chat, 5, "And how?")
    expect(chat.in_state("done")).to_have_count(3)
    entries = count_entries(chat.page.locator("header.bar > .menu"))
    assert {"Branches…", "Share…", "Export…", "Delete"} <= {*entries}
    assert len(entries) <= MOST_OF_CONVERSATION, entries
    reply = chat.message(4)
    reply.hover()
    entries = count_entries(reply.locator(".message-menu"))
    assert {"Pin", "Summarise up to here…", "Delete the text…"} <= {*entries}
    assert len(entries) <= MOST_OF_REPLY, entries
    # What is rare is one click away, and within sight.
    more = reply.locator(".confirm", has_text="More…")
    expect(more).to_have_count(int("Try again differently…" in entries))
    if "More…" in entries:
        more.locator("summary").click()
        last = more.locator(".item").last
        expect(last).to_be_in_viewport(ratio=1)
        assert more.locator(".item").count() >= 3


@pytest.mark.parametrize("width", [1440, 390])
def test_options_of_the_home_page_are_two_chips(open_page, made, width):
    page = open_page(made, width=width).page
    chips = page.locator(".options > .option > :is(label, summary)")
    expect(chips).to_have_text(["Temporary conversation", "OptionsLayered"])
    box = page.locator("#composer .box").bounding_box()
    chips.last.click()
    fields = page.locator(".options .fields")
    expect(fields.get_by_label("How it remembers")).to_be_visible()
    place = fields.bounding_box()
    assert place["x"] >= 0
    assert place["x"] + place["width"] <= width
    assert place["y"] > box["y"] + box["height"]


def test_figures_of_the_pane_are_five_lines(open_written):
    chat = open_written("We are 4 people.", "Where are we going?")
    chat.right.locator(".about > summary").click()
    lines = chat.right.locator(".accounted :is(p, figcaption > p)")
    shown = [line.inner_text() for line in lines.all() if line.is_visible()]
    assert 3 <= len(list(filter(None, shown))) <= 5, shown
    expect(chat.right.get_by_text("Summary history")).to_be_hidden()
    about = chat.right.locator(".about")
    about.locator("[data-key=about-more] > summary").click()
    expect(about.get_by_text("Summary history")).to_be_visible()
    expect(about).to_contain_text("reserved for the reply")
