"""Two tabs change the same thing, or none has a connection.

The later one is notified, and nothing that was typed is lost.
"""

import pytest
from playwright.sync_api import expect

from tests.patience import PATIENCE

pytestmark = pytest.mark.browser


@pytest.fixture
def tabs(open_written, open_page, site):
    """Two tabs of one browser on one conversation with two turns."""
    chat = open_written("I'm Lance.", "The budget is 3,200.")
    other = open_page(site, context=chat.page.context, is_home=False)
    other.open(chat.url)
    return chat, other


def rename(tab, title):
    tab.page.click("#rename > summary")
    tab.page.fill("#rename [name=title]", title)


def enter(tab):
    tab.page.press("#rename [name=title]", "Enter")


def choose(tab, preset):
    tab.memory_settings()
    tab.page.select_option("#policy [name=preset]", preset)


def test_the_later_of_two_names_and_settings_is_told_and_may_insist(tabs):
    one, other = tabs
    rename(other, "From the second")
    rename(one, "From the first")
    enter(one)
    title = other.page.locator("#conversation-title")
    expect(title).to_have_text("From the first")
    enter(other)
    alert = other.page.locator("#rename").get_by_role("alert")
    expect(alert).to_contain_text("“From the first”")
    enter(other)
    expect(one.page.locator("#conversation-title")).to_have_text("From the second")
    one.page.click("#rename > summary")
    expect(one.page.locator("#rename [name=title]")).to_have_value("From the second")

    choose(other, "guide")
    choose(one, "langgraph")
    one.page.locator("#policy").get_by_role("button", name="Apply").click()
    notice = one.page.locator("#notice")
    expect(notice).to_contain_text("LangGraph")
    other.page.locator("#policy").get_by_role("button", name="Apply").click()
    alert = other.page.locator("#policy").get_by_role("alert")
    expect(alert).to_contain_text("Apply again to overwrite")
    expect(other.page.locator("#policy [name=preset]")).to_have_value("guide")
    notice.get_by_text("Undo").click()
    expect(one.right).to_contain_text("summarises at 4,000 tokens")


def test_the_later_of_two_wordings_is_told_and_goes_out_as_an_edit_of_the_first(tabs):
    one, other = tabs
    for tab, text in ((one, "It is 3,300."), (other, "It is 3,400.")):
        tab.replace(3)
        tab.box.fill(text)
    one.box.press("Enter")
    expect(other.message(5)).to_contain_text("3,300")
    expect(other.in_state("done")).to_have_count(3)
    other.box.press("Enter")
    expect(other.error).to_contain_text("is #5 now")
    expect(other.box).to_have_value("It is 3,400.")
    expect(other.page.locator("#editing-seq")).to_have_text("#5")
    other.box.press("Enter")
    for tab in tabs:
        expect(tab.message(7)).to_contain_text("3,400")
    said = [row["text"] for row in one.transcript() if not row["superseded"]]
    assert [text for text in said if "It is" in text][0] == "It is 3,400."


def test_page_without_a_connection_reports_it_and_keeps_the_draft(tabs, errors):
    tab, page = tabs[0], tabs[0].page
    tab.message(2).hover()
    tab.message(2).locator(".message-menu > summary").click()
    tab.message(2).get_by_text("Summarise up to here…").click()
    dialog = page.locator("#dialog")
    dialog.get_by_text("Draft a summary").click()
    box = dialog.locator("[name=text]")
    box.fill("In my words.")
    page.keyboard.press("Escape")
    expect(dialog.get_by_role("alert")).to_contain_text("You have unsaved changes")
    page.context.set_offline(True)
    dialog.get_by_text("Accept", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("No connection")
    expect(box).to_have_value("In my words.")
    dialog.get_by_text("Cancel").click()
    page.evaluate("dispatchEvent(new Event('offline'))")
    away = page.locator("#no-connection")
    expect(away).to_contain_text("Keep writing")
    tab.box.fill("Written on the train")
    tab.box.press("Enter")
    waiting = page.locator("#waiting")
    expect(waiting).to_contain_text("Written on the train")
    expect(tab.box).to_have_value("")
    page.context.set_offline(False)
    expect(waiting).to_be_hidden(timeout=30_000 * PATIENCE)
    expect(away).to_be_empty()
    assert tab.transcript()[4]["text"] == "Written on the train"
    reports = ("WebSocket", "ERR_INTERNET", "[object Event]", "htmx:")
    errors[:] = [text for text in errors if not any(part in text for part in reports)]


def show(tab, *, hidden):
    tab.page.evaluate(
        """(value) => {
            Object.defineProperty(document, "hidden", { value, configurable: true });
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        hidden,
    )


def close_drawer(tab):
    tab.page.set_viewport_size({"width": 900, "height": 800})


def open_drawer(tab):
    tab.page.click("#toggle-pane")


UNSEEN = {
    "hidden tab": (
        lambda tab: show(tab, hidden=True),
        lambda tab: show(tab, hidden=False),
    ),
    "closed drawer": (close_drawer, open_drawer),
}


@pytest.mark.parametrize("name", UNSEEN)
def test_the_right_pane_is_loaded_when_it_is_seen_again(tabs, name):
    one, other = tabs
    hide, reveal = UNSEEN[name]
    expect(other.right).to_contain_text("All 4 messages accounted for")
    other.page.wait_for_load_state("networkidle")
    hide(other)
    requested = []
    other.page.on("request", lambda request: requested.append(request.url))
    one.say("And a museum.")
    expect(one.right).to_contain_text("All 6 messages accounted for")
    expect(other.turns.last).to_have_attribute("data-state", "done")
    other.page.wait_for_timeout(500)
    assert not [url for url in requested if "/context/" in url]
    reveal(other)
    expect(other.right).to_contain_text("All 6 messages accounted for")
