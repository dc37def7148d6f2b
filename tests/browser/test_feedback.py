"""Good or bad under a reply, by mouse and by key, in one tab and the other."""

import pytest
from playwright.sync_api import expect

from .test_access import is_clean

pytestmark = pytest.mark.browser


@pytest.fixture
def tabs(open_written, open_page, site):
    """Two tabs of one browser on one conversation with two replies."""
    chat = open_written("I'm Lance.", "The budget is 3,200.")
    other = open_page(site, context=chat.page.context, is_home=False)
    other.open(chat.url)
    return chat, other


def button(tab, name, seq=2):
    return tab.message(seq).get_by_role("button", name=name, exact=True)


def is_pressed(tab, name, seq=2, *, pressed=True):
    expected = "true" if pressed else "false"
    locator = button(tab, name, seq)
    expect(locator).to_have_attribute("aria-pressed", expected)


def place_of(tab):
    """Return the position of the content that follows the buttons."""
    boxes = [tab.message(seq).bounding_box() for seq in (2, 3)]
    scrolled = tab.page.evaluate("document.getElementById('transcript').scrollTop")
    return boxes, scrolled


def test_a_key_marks_a_reply_in_every_tab_and_nothing_moves(tabs):
    one, other = tabs
    one.message(2).focus()
    before = place_of(one)
    expect(one.message(2).get_by_text("Why…")).to_be_hidden()
    button(one, "Bad reply").focus()
    one.page.keyboard.press("Space")
    is_pressed(one, "Bad reply")
    expect(button(one, "Bad reply")).to_be_focused()
    expect(button(one, "Why…")).to_be_visible()
    assert place_of(one) == before
    is_pressed(other, "Bad reply")
    one.page.keyboard.press("Shift+Tab")
    expect(button(one, "Good reply")).to_be_focused()
    one.page.keyboard.press("Enter")
    is_pressed(one, "Good reply")
    is_pressed(one, "Bad reply", pressed=False)
    is_pressed(other, "Good reply")
    one.page.keyboard.press("Enter")
    is_pressed(one, "Good reply", pressed=False)
    is_pressed(other, "Good reply", pressed=False)
    expect(one.page.locator("#notice")).to_contain_text("was removed")
    one.page.keyboard.press("Alt+z")
    is_pressed(other, "Good reply")
    one.page.reload()
    is_pressed(one, "Good reply")
    is_pressed(one, "Good reply", 4, pressed=False)


# Presses Alt+Z in the moment in which a notice can be undone.
UNDO_AT_ONCE = """() => {
    window.isSamePage = true;
    const notice = document.getElementById("notice");
    const observer = new MutationObserver(() => {
        if (!notice.querySelector("form")) return;
        observer.disconnect();
        const press = { altKey: true, code: "KeyZ", bubbles: true };
        document.body.dispatchEvent(new KeyboardEvent("keydown", press));
    });
    observer.observe(notice, { childList: true });
}"""


def test_undo_works_as_soon_as_it_is_there(open_written):
    chat = open_written("I'm Lance.")
    chat.page.evaluate(UNDO_AT_ONCE)
    chat.message(2).hover()
    button(chat, "Good reply").click()
    expect(chat.page.locator("#notice")).to_contain_text("was removed")
    is_pressed(chat, "Good reply", pressed=False)
    assert chat.page.evaluate("window.isSamePage")


def test_a_word_why_stays_in_the_dialog_until_it_is_stored(open_written):
    chat = open_written("I'm Lance.")
    page, dialog = chat.page, chat.page.locator("#dialog")
    chat.message(2).hover()
    button(chat, "Bad reply").click()
    button(chat, "Why…").click()
    box = dialog.get_by_label("Comment")
    expect(box).to_be_focused()
    is_clean(page, "#dialog, #message-2")
    box.evaluate("(box) => { box.maxLength = 9999 }")
    box.fill("x" * 1_001)
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("the limit is 1,000")
    expect(box).to_have_value("x" * 1_001)
    box.fill("It forgot my name.")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()
    expect(page.locator("#notice")).to_contain_text("Saved.")
    expect(button(chat, "Why…")).to_be_focused()
    page.keyboard.press("Enter")
    expect(box).to_have_value("It forgot my name.")
