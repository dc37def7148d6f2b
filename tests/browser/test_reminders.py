"""A reminder that is due: a message, a dot, a number in the title, a notification."""

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

# A browser that asks whether notifications are allowed, and says yes.
ASKS = """window.told = [];
window.Notification = class {
    static permission = "default";
    static async requestPermission() { return (this.permission = "granted"); }
    constructor(text) { told.push(text); }
    addEventListener() {}
    close() { told.push("closed"); }
};"""
HIDE = """(hidden) => {
    Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
}"""
# Notices, if there are too many of them.
TOLD = """async (count) => {
    while (told.length < count) await new Promise((done) => setTimeout(done, 50));
    return told;
}"""
COUNTED = re.compile(r"^\(1\) ")


@pytest.fixture(scope="module")
def site(make_site):
    env = {"DEFAULT_TOOLS": "remind_me", "DEMO_TOKENS_PER_SECOND": "200"}
    with make_site(**env) as running:
        yield running


def test_reminder_is_shown_until_it_is_read(open_page, site):
    chat = open_page(site)
    chat.page.add_init_script(ASKS)
    chat.create()
    other = open_page(site, context=chat.page.context)
    other.create()
    uuid = chat.url.split("/")[-2]
    chat.say("Remind me in 3 seconds to drink tea")
    button = chat.page.get_by_role("button", name="Notify me")
    button.click()
    expect(button).to_be_hidden()
    chat.page.evaluate(HIDE, True)

    due = chat.page.locator("#turns .message.reminder")
    expect(due).to_contain_text("Reminder: drink tea")
    expect(due.locator(".body")).to_be_visible()
    expect(chat.page).to_have_title(COUNTED)
    assert chat.page.evaluate(TOLD, 1) == ["Reminder: drink tea"]
    for page in (chat.page, other.page):
        expect(page.locator(f"#title-{uuid}")).to_have_attribute(
            "data-unread", "unread reminder"
        )
    expect(other.page).to_have_title(COUNTED)
    notice = other.page.locator("#notice a")
    expect(notice).to_have_text("Reminder: drink tea")
    # The home page and a reload know of it, too.
    other.page.goto(f"{site.url}/")
    expect(other.page).to_have_title(COUNTED)
    expect(other.page.locator(f"#title-{uuid}")).to_have_attribute(
        "data-unread", "unread reminder"
    )
    other.create()
    expect(other.page).to_have_title(COUNTED)

    chat.page.evaluate(HIDE, False)
    for page in (chat.page, other.page):
        expect(page).not_to_have_title(COUNTED)
        expect(page.locator("[data-unread]")).to_have_count(0)
    assert chat.page.evaluate("told") == ["Reminder: drink tea", "closed"]
    expect(due).to_be_visible()
