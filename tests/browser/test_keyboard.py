"""Everything without a mouse: a whole session, and where the focus goes meanwhile."""

import pytest
from playwright.sync_api import expect

from .conftest import open_tab
from .pages import PASSWORD, USER, ConversationPage

pytestmark = pytest.mark.browser

IS_FOCUSED = "(selector) => document.activeElement.matches(selector)"
SCRIPT = "text/javascript"
HAS_RING = """() => {
    const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
    return outlineStyle !== "none" && parseFloat(outlineWidth) >= 2;
}"""


class Keys:
    def __init__(self, page):
        self.page = page

    def press(self, *names):
        for name in names:
            self.page.keyboard.press(name)

    def go_to(self, selector, key="Tab"):
        """Press Tab until it is there, and see that it shows."""
        # The list of conversations before it grows with every test.
        for _ in range(400):
            self.page.keyboard.press(key)
            if self.page.evaluate(IS_FOCUSED, selector):
                assert self.page.evaluate(HAS_RING), f"no focus ring on {selector}"
                return
        raise AssertionError(f"Tab does not lead to {selector}")

    def type(self, text):
        self.page.keyboard.type(text)


@pytest.fixture
def chat(take_context, errors, site):
    """A browser whose user has only just come."""
    page = open_tab(take_context(width=1280, height=800), site)
    chat = ConversationPage(page, site)
    chat.report_to(errors)
    chat.page.goto(f"{site.url}/accounts/login/")
    return chat


def log_in(chat, keys):
    expect(chat.page.locator("[name=username]")).to_be_focused()
    keys.type(USER)
    keys.press("Tab")
    keys.type(PASSWORD)
    keys.press("Enter")
    chat.page.wait_for_url(f"{chat.site.url}/")
    keys.go_to("#composer .option > summary")
    keys.press("Enter")
    keys.go_to("#composer [name=system_prompt]")
    keys.type("Be brief.")


def begin(chat, keys, text):
    """Type outside of every field: the text goes to the message box."""
    chat.page.evaluate("document.activeElement.blur()")
    keys.type(text)
    expect(chat.box).to_be_focused()
    keys.press("Enter")
    chat.page.wait_for_url("**/c/*/")
    expect(chat.in_state("done")).to_have_count(1)


def say(chat, keys, text, replies):
    expect(chat.box).to_be_focused()
    keys.type(text)
    keys.press("Enter")
    expect(chat.in_state("done")).to_have_count(replies)
    expect(chat.box).to_be_focused()


def skip_to_the_box(chat, keys):
    """The first stop of the page leads past the list and the header."""
    chat.page.locator(".skip").focus()
    keys.press("Enter")
    expect(chat.box).to_be_focused()


def pin_and_undo(chat, keys):
    keys.press("Alt+ArrowUp")
    expect(chat.message(4)).to_be_focused()
    keys.go_to("#message-4 .message-menu > summary")
    keys.press("Enter")
    expect(chat.message(4).locator(".menu-items")).to_be_visible()
    keys.press("Tab")
    expect(chat.page.get_by_role("button", name="Pin")).to_be_focused()
    keys.press("Enter")
    expect(chat.message(4)).to_contain_text("Pinned")
    expect(
        chat.page.locator("#message-4:focus-within, #message-4:focus")
    ).to_have_count(1)
    # Also when what was said has gone by itself.
    chat.page.evaluate("document.getElementById('notice').dataset.past = ''")
    expect(chat.page.locator("#notice")).to_be_hidden()
    keys.press("Alt+z")
    expect(chat.message(4)).not_to_contain_text("Pinned")
    # Both acts have the right pane drawn again, which takes the focus for a moment.
    chat.page.wait_for_load_state("networkidle")


def close_and_open_the_pane(chat, keys):
    keys.press("Alt+m")
    expect(chat.page.locator("#context-body")).to_be_hidden()
    keys.go_to(".strip")
    keys.press("Enter")
    expect(chat.page.locator("#context-body")).to_be_visible()
    expect(chat.page.locator("#context :focus")).to_have_count(1)


def preview_and_cancel(chat, keys):
    keys.press("Alt+ArrowUp", "Alt+ArrowUp", "Alt+ArrowUp")
    expect(chat.message(2)).to_be_focused()
    keys.go_to("#message-2 .message-menu > summary")
    keys.press("Enter")
    expect(chat.message(2).locator(".menu-items")).to_be_visible()
    keys.go_to("#message-2 .item[hx-get]")
    keys.press("Enter")
    dialog = chat.page.locator("#dialog")
    # Its first use also loads what opens it.
    expect(dialog).to_be_visible()
    expect(dialog).to_contain_text("stops reading messages")
    keys.press("Tab", "Tab", "Tab", "Tab", "Tab")
    assert chat.page.evaluate(IS_FOCUSED, "#dialog *, body")
    keys.press("Escape")
    expect(dialog).to_be_hidden()
    expect(chat.page.locator("#message-2 .message-menu > summary")).to_be_focused()


def search_and_log_out(chat, keys):
    keys.press("Control+k")
    keys.type("xylophone")
    expect(chat.page.locator("#conversation-list")).to_contain_text("No results for")
    expect(chat.page.locator("#search")).to_be_focused()
    keys.go_to(".user-menu > summary")
    keys.press("Enter", "Escape")
    expect(chat.page.locator(".user-menu > summary")).to_be_focused()
    keys.press("Enter")
    keys.go_to("form[action='/accounts/logout/'] button")
    keys.press("Enter")
    chat.page.wait_for_url("**/accounts/login/**")


def test_a_whole_session_needs_no_mouse(chat):
    keys = Keys(chat.page)
    log_in(chat, keys)
    begin(chat, keys, "Hi, I'm Lance!")
    say(chat, keys, "I like tea.", replies=2)
    skip_to_the_box(chat, keys)
    pin_and_undo(chat, keys)
    close_and_open_the_pane(chat, keys)
    preview_and_cancel(chat, keys)
    search_and_log_out(chat, keys)
    expect(chat.page.locator("[name=username]")).to_be_focused()


def test_the_theme_is_chosen_once_for_every_page(chat):
    page, keys = chat.page, Keys(chat.page)
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    keys.go_to(".theme-choice [value=dark]")
    keys.press("Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.get_by_role("button", name="Dark", pressed=True)).to_be_visible()
    dark = page.evaluate(paper)
    assert dark != light
    # The page that comes next has it before any script has run.
    page.route("**/*.js", lambda route: route.fulfill(content_type=SCRIPT, body=""))
    page.get_by_role("link", name="Create an account").click()
    page.wait_for_url("**/accounts/signup/")
    expect(page.locator("body")).to_have_css("background-color", dark)


def test_list_is_folded_until_it_is_asked_for(open_written):
    chat = open_written("Hello")
    page, conversations = chat.page, chat.page.locator("#sidebar")
    page.keyboard.press("Control+b")
    expect(conversations).to_be_hidden()
    page.reload()
    chat.is_live()
    expect(conversations).to_be_hidden()
    page.keyboard.press("Control+Shift+O")
    expect(page).to_have_url(f"{chat.site.url}/")
    page.get_by_role("button", name="Conversations").click()
    expect(conversations).to_be_visible()
    page.get_by_label("Close the list").click()
    expect(conversations).to_be_hidden()
    page.keyboard.press("Control+b")
    expect(conversations).to_be_visible()
