"""The list of conversations, searching it, and what leads into and out of it."""

import json
import time

import pytest
from playwright.sync_api import expect

from tests.patience import wait_for

from .written import write_long

pytestmark = pytest.mark.browser


def row_of(chat, title):
    return chat.page.locator("#conversation-list li.row", has_text=title)


def act_on(chat, title, name):
    row = row_of(chat, title)
    # Keys pressed before htmx has settled a new list are lost.
    fresh = chat.page.locator("#conversation-list:is(.htmx-added, .htmx-settling)")
    expect(row).to_be_visible()
    expect(fresh).to_have_count(0)
    row.locator("summary").focus()
    chat.page.keyboard.press("Enter")
    row.get_by_role("button", name=name).click()


def test_a_search_leads_to_the_message(chat, site):
    chat.say("My locker code is zebra77, remember it.")
    found = chat.url
    chat.create()
    chat.page.keyboard.press("Control+k")
    chat.page.keyboard.type("zebra77")
    hit = chat.page.locator("#conversation-list .found a").first
    expect(hit.locator("mark")).to_have_text("zebra77")
    expect(hit.locator("time")).to_be_visible()
    hit.click()
    chat.page.wait_for_url(f"{found}?at=*#message-*")
    chat.is_live()
    expect(chat.page.locator(".message.aimed")).to_contain_text("zebra77")


def scroll_up(chat):
    """Scroll to the first message; a page that opens can still move to its own one."""
    chat.page.mouse.move(500, 400)

    def is_there():
        chat.page.mouse.wheel(0, -1200)
        return chat.message(1).count()

    wait_for(is_there, what="the first message")


def hold_back(route):
    time.sleep(0.5)
    route.continue_()


def test_a_message_far_up_is_reached_and_the_gap_closes(open_page, site, write_in):
    chat = open_page(site, is_home=False)
    chat.open(site.url + write_in(site, write_long, 200))
    assert chat.message(21).count() == 0
    chat.open(f"{chat.url}?at=21#message-21")
    expect(chat.message(21)).to_be_in_viewport()
    scroll_up(chat)
    expect(chat.message(1)).to_have_count(1)
    expect(chat.message(200)).to_have_count(1)
    gap = chat.page.get_by_role("button", name="Show the messages between")
    turns = chat.page.locator("#turns .turn")
    while gap.count():
        shown = turns.count()
        gap.click()
        expect(turns).not_to_have_count(shown)
    expect(turns).to_have_count(100)

    # Drawn before its last script is there, and without a word from the server.
    chat.page.route("**/bundles/conversation*.js", hold_back)
    chat.page.route_web_socket("**", lambda socket: None)
    chat.page.goto(f"{chat.url}?at=21#message-21")
    scroll_up(chat)
    expect(chat.message(1)).to_have_count(1)


def test_rows_are_pinned_archived_deleted_and_brought_back_by_keyboard(chat, site):
    chat.say("Row to be moved about")
    act_on(chat, "Row to be moved about", "Pin to the top")
    expect(chat.page.locator(".section-name").first).to_have_text("Pinned")
    act_on(chat, "Row to be moved about", "Archive")
    expect(row_of(chat, "Row to be moved about")).to_have_count(0)
    chat.page.get_by_role("link", name="Archived (").click()
    act_on(chat, "Row to be moved about", "Unarchive")
    expect(chat.page.locator("#conversation-list")).to_contain_text("Nothing is")
    chat.page.get_by_role("link", name="All conversations").click()
    act_on(chat, "Row to be moved about", "Delete")
    chat.page.wait_for_url(f"{site.url}/")
    undo = chat.page.locator(".undo", has_text="Row to be moved about")
    undo.get_by_role("button", name="Undo", exact=True).click()
    expect(row_of(chat, "Row to be moved about")).to_be_visible()


def test_other_tabs_hear_of_a_new_name_and_of_the_end(chat, open_page, site):
    other = open_page(site, is_home=False)
    other.open(chat.url)
    # What it still asks for when the conversation is gone is a 404.
    other.page.wait_for_load_state("networkidle")
    chat.page.click("#rename > summary")
    chat.page.fill("#rename [name=title]", "Named in one tab")
    chat.page.keyboard.press("Enter")
    expect(other.page.locator("#conversation-title")).to_have_text("Named in one tab")
    act_on(chat, "Named in one tab", "Delete")
    chat.page.wait_for_url(f"{site.url}/")
    expect(other.page.locator("#connection")).to_have_attribute("data-state", "gone")


def test_the_keys_are_listed_and_lead_from_message_to_message(open_written):
    chat = open_written("One", "Two")
    chat.box.press("Alt+ArrowUp")
    expect(chat.message(4)).to_be_focused()
    chat.page.keyboard.press("Alt+ArrowUp")
    expect(chat.message(3)).to_be_focused()
    chat.page.keyboard.press("?")
    dialog = chat.page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(dialog).to_contain_text("Search conversations")
    chat.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    chat.box.press("?")
    expect(chat.box).to_have_value("?")
    expect(dialog).to_be_hidden()


def test_the_account_page_keeps_what_new_conversations_begin_with(open_page, site):
    chat = open_page(site)
    chat.page.goto(f"{site.url}/")
    chat.page.click(".user-menu > summary")
    chat.page.get_by_role("link", name="Account and data").click()
    chat.page.get_by_role("link", name="Memory and models").click()
    beginning = chat.page.locator("form", has=chat.page.locator("[name=preset]"))
    chat.page.select_option("[name=preset]", "guide")
    beginning.get_by_role("button", name="Save").click()
    expect(chat.page.get_by_role("status")).to_contain_text("Saved")
    chat.page.get_by_role("link", name="Privacy and data").click()
    with chat.page.expect_download() as download:
        chat.page.get_by_role("link", name="Download everything").click()
    value = json.loads(download.value.path().read_text())
    assert value["account"]["preferences"]["preset"] == "guide"
    chat.page.get_by_role("link", name="Memory and models").click()
    chat.page.select_option("[name=preset]", "")
    beginning.get_by_role("button", name="Save").click()
