"""Branches of one conversation: made by editing, leafed through, seen as a map."""

import re

import pytest
from playwright.sync_api import expect

from .test_access import findings

pytestmark = pytest.mark.browser


def say_again(chat, seq, text):
    """Edit a message; its branch is the page that opens."""
    before = chat.url
    chat.act(seq, "Edit")
    chat.box.fill(text)
    chat.box.press("Enter")
    chat.page.wait_for_url(lambda url: url.split("?")[0] != before)
    chat.is_live()
    expect(chat.message(seq)).to_contain_text(text)
    return before


def forks(chat, seq):
    return chat.message(seq).get_by_role("navigation")


@pytest.fixture
def trip(open_written):
    return open_written("Where is Zurich?", "A hotel there?", "By train?")


def test_an_edit_goes_on_beside_what_was_said(trip):
    rows = trip.page.locator("#conversation-list .row")
    first = say_again(trip, 3, "A hostel there?")
    expect(trip.in_state("done")).to_have_count(2)
    expect(forks(trip, 3)).to_contain_text("2 / 2")
    expect(trip.box).to_have_value("")
    titled = trip.page.locator("#conversation-list .row [aria-current=page]")
    expect(titled).to_have_count(1)
    count = rows.count()
    forks(trip, 3).get_by_role("link", name="Previous branch").press("Enter")
    trip.page.wait_for_url(re.compile(re.escape(first)))
    trip.is_live()
    expect(trip.message(5)).to_contain_text("By train?")
    expect(forks(trip, 3)).to_contain_text("1 / 2")
    expect(trip.message(3)).to_be_in_viewport()
    expect(trip.page.locator("#editing")).to_be_hidden()
    expect(trip.box).to_have_value("")
    expect(rows).to_have_count(count)


def test_enter_pressed_twice_makes_one_and_keeps_what_waits_in_the_box(trip):
    trip.box.fill("not sent yet")
    scripts, first = [], trip.page.url
    trip.page.route("**/make-branch*.js", lambda route: scripts.append(route), times=1)
    trip.message(3).hover()
    trip.message(3).locator("[data-edit]").click()
    trip.box.fill("A hostel there?")
    with trip.page.expect_request("**/make-branch*.js"):
        trip.box.press("Enter")
    trip.box.press("Enter")
    scripts[0].continue_()
    trip.page.wait_for_url(lambda url: url.partition("?")[0] != first)
    expect(forks(trip, 3)).to_contain_text("2 / 2")
    trip.page.goto(first)
    expect(trip.box).to_have_value("not sent yet")


def test_the_map_shows_all_branches_and_deletes_one(trip):
    say_again(trip, 3, "A hostel there?")
    say_again(trip, 3, "A tent there?")
    expect(trip.in_state("done")).to_have_count(2)
    forks(trip, 3).get_by_role("button", name="All branches").click()
    dialog = trip.page.locator("#dialog")
    expect(dialog.get_by_role("link")).to_have_count(3)
    expect(dialog.locator("[aria-current=page]")).to_contain_text("A tent there?")
    assert findings(trip.page, "#dialog") == []
    hostel = dialog.get_by_role("listitem").filter(has_text="A hostel there?").last
    hostel.locator("summary").click()
    hostel.get_by_role("button", name="Delete this branch").click()
    expect(dialog.get_by_role("link")).to_have_count(2)
    expect(dialog).to_contain_text("The branch was deleted.")
    trip.page.keyboard.press("Escape")
    trip.page.reload()
    expect(forks(trip, 3)).to_contain_text("2 / 2")


def test_an_edit_can_still_replace(trip):
    trip.replace(3)
    trip.box.fill("A hostel there?")
    trip.box.press("Enter")
    expect(trip.message(7)).to_contain_text("A hostel there?")
    expect(trip.page.locator("details.superseded")).to_have_count(2)


def test_edit_that_cannot_be_sent_stays_in_the_box(trip, errors):
    trip.act(3, "Edit")
    trip.box.fill("A hostel there?")
    trip.page.context.set_offline(True)
    trip.box.press("Enter")
    expect(trip.error).to_contain_text("Sending failed. Your text is still here.")
    expect(trip.box).to_have_value("A hostel there?")
    trip.page.context.set_offline(False)
    trip.is_live()
    before = trip.url
    trip.box.press("Enter")
    trip.page.wait_for_url(lambda url: url.split("?")[0] != before)
    expect(forks(trip, 3)).to_contain_text("2 / 2")
    errors.clear()


@pytest.mark.parametrize("size", [{}, {"width": 390}], ids=["wide", "phone"])
def test_axe_finds_nothing_in_either_theme(open_written, size):
    chat = open_written("Where is Zurich?", "A hotel there?", "By train?", **size)
    say_again(chat, 3, "A hostel there?")
    expect(chat.in_state("done")).to_have_count(2)
    for scheme in ("light", "dark"):
        chat.page.emulate_media(color_scheme=scheme)
        assert findings(chat.page) == []
        forks(chat, 3).get_by_role("button", name="All branches").click()
        expect(chat.page.locator("#dialog a")).to_have_count(2)
        assert findings(chat.page, "#dialog") == []
        chat.page.keyboard.press("Escape")
        expect(chat.page.locator("#dialog")).to_be_hidden()
    chat.act(3, "Edit")
    assert findings(chat.page) == []
