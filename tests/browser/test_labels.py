"""Labels and several conversations at once: by mouse, by keyboard, on a phone."""

import re

import pytest
from playwright.sync_api import expect

from chatsite.features.labels.models import Label
from memory import transcript
from memory.models import Conversation

from .test_access import findings
from .written import find_owner

pytestmark = pytest.mark.browser

TITLES = ("Trip to Kyoto", "Bakery budget", "Swim lessons", "Tax return")


def begin_anew():
    """Four conversations, the latest first, and no label."""
    Label.objects.all().delete()
    Conversation.objects.all().delete()
    for title in TITLES:
        transcript.create_conversation(find_owner(), title=title, model="demo")


@pytest.fixture(scope="module")
def site(make_site):
    with make_site() as running:
        yield running


@pytest.fixture
def listed(open_page, site, write_in):
    """The home page beside four conversations."""
    write_in(site, begin_anew)
    chat = open_page(site)
    expect(rows_of(chat)).to_have_count(4)
    return chat


def rows_of(chat, title=None):
    return chat.page.locator("#conversation-list .row", has_text=title)


def select(chat):
    chat.page.click("#pick-switch")
    expect(chat.page.locator(".pick")).to_have_count(4)


def said(chat, text):
    expect(chat.page.locator("#list-said")).to_have_text(text)
    # Keys pressed before htmx has settled a new list are lost.
    fresh = chat.page.locator("#conversation-list:is(.htmx-added, .htmx-settling)")
    expect(fresh).to_have_count(0)


def label(chat, title, name):
    """Give a new label from the menu of a row, by keyboard."""
    rows_of(chat, title).locator("summary").first.focus()
    chat.page.keyboard.press("Enter")
    chat.page.get_by_text("Labels…").focus()
    chat.page.keyboard.press("Enter")
    box = chat.page.locator(".row-labels [name=name]")
    expect(box).to_be_visible()
    # Before htmx has taken a new form, Enter leads to another page.
    expect(chat.page.locator(".htmx-added")).to_have_count(0)
    box.fill(name)
    chat.page.keyboard.press("Enter")
    # An earlier label was saved, too: this one is when its name is listed.
    expect(chat.page.locator(".labels a", has_text=name)).to_be_visible()
    said(chat, "Saved.")


def test_a_label_is_given_by_keyboard_and_by_drag_and_shows_its_own(listed):
    page = listed.page
    label(listed, "Trip to Kyoto", "Travel")
    expect(rows_of(listed, "Trip to Kyoto").locator("a")).to_be_focused()
    travel = page.locator(".labels a", has_text="Travel")
    rows_of(listed, "Bakery budget").locator("a").drag_to(travel)
    said(listed, "1 conversation labelled “Travel”.")

    travel.click()
    expect(rows_of(listed)).to_have_count(2)
    expect(page).to_have_url(re.compile(r"/\?label=\d+$"))
    expect(travel).to_be_focused()
    page.reload()
    expect(rows_of(listed)).to_have_count(2)
    # It stays while one goes from conversation to conversation, and narrows a search.
    rows_of(listed, "Trip to Kyoto").locator("a").click()
    listed.is_live()
    expect(rows_of(listed)).to_have_count(2)
    page.fill("#search", "a")
    expect(rows_of(listed)).to_have_count(1)
    page.fill("#search", "")
    expect(rows_of(listed)).to_have_count(2)
    travel.click()
    expect(rows_of(listed)).to_have_count(4)
    expect(page).to_have_url(listed.url)


def test_a_label_is_renamed_and_deleted(listed):
    page = listed.page
    label(listed, "Trip to Kyoto", "Travel")
    label(listed, "Tax return", "Home")
    page.locator(".labels a", has_text="Travel").click()
    name = page.locator(".label-menu [name=name]")
    page.click(".label-menu > summary")
    name.fill("HOME")
    name.press("Enter")
    said(listed, "You already have a label “HOME”. Choose another name.")
    expect(name).to_have_value("HOME")
    assert findings(page, ".sidebar") == []
    name.fill("Journeys")
    name.press("Enter")
    said(listed, "Saved.")
    page.click(".label-menu > summary")
    page.locator(".label-menu .confirm > summary").click()
    page.locator(".label-menu .confirm button").click()
    expect(page.locator(".labels a")).to_have_text(["Home"])
    expect(rows_of(listed)).to_have_count(4)


def test_several_are_chosen_with_shift_and_deleted_and_brought_back(listed):
    page, count = listed.page, listed.page.locator("#several-count")
    select(listed)
    boxes = page.locator(".pick")
    rows_of(listed, "Tax return").click()
    rows_of(listed, "Bakery budget").click(modifiers=["Shift"])
    expect(count).to_have_text("3")
    boxes.nth(1).focus()
    page.keyboard.press("Space")
    expect(count).to_have_text("2")
    page.get_by_text("Delete…").click()
    assert findings(page, ".sidebar") == []
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(rows_of(listed)).to_have_count(2)
    undo = page.get_by_role("button", name="Undo", exact=True)
    expect(page.locator(".undo")).to_contain_text("2 conversations were deleted.")
    expect(undo).to_be_focused()
    page.keyboard.press("Enter")
    expect(rows_of(listed)).to_have_count(4)
    select(listed)
    page.locator("#several-all").check()
    expect(count).to_have_text("4")
    page.get_by_role("button", name="Archive", exact=True).click()
    line = page.locator("#list-said")
    expect(line).to_contain_text("4 conversations archived.")
    expect(page.locator(".pick")).to_have_count(0)
    expect(rows_of(listed)).to_have_count(0)
    line.get_by_role("button", name="Undo").click()
    said(listed, "4 conversations unarchived. Undo")
    expect(rows_of(listed)).to_have_count(4)


def test_selection_stays_when_an_action_is_refused(listed):
    page = listed.page
    select(listed)
    page.get_by_role("button", name="Archive", exact=True).click()
    said(listed, "Choose conversations first.")
    page.locator(".pick").first.check()
    page.locator(".several").get_by_text("Label", exact=True).click()
    page.locator(".several [name=name]").fill(" ")
    page.locator(".several [name=name]").press("Enter")
    said(listed, "Give the label a name.")
    expect(page.locator(".pick").first).to_be_checked()
    page.locator(".several [name=name]").fill("Sorted")
    page.get_by_role("button", name="Add").click()
    said(listed, "1 conversation labelled “Sorted”.")


def test_a_phone_does_the_same_in_the_drawer(listed):
    page = listed.page
    page.set_viewport_size({"width": 390, "height": 844})
    page.click("#open-sidebar")
    select(listed)
    for title in TITLES[:2]:
        rows_of(listed, title).click()
    page.locator(".several").get_by_text("Label", exact=True).click()
    page.locator(".several [name=name]").fill("Travel")
    page.get_by_role("button", name="Add").click()
    said(listed, "2 conversations labelled “Travel”.")
    expect(page.locator("#list-said")).to_be_in_viewport()
    page.locator(".labels a").click()
    expect(rows_of(listed)).to_have_count(2)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert findings(page, ".sidebar") == []
