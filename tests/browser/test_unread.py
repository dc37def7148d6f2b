"""News of another conversation: a dot, a number in the title, a notification."""

import pytest
from playwright.sync_api import expect

from .test_access import findings
from .test_reminders import ASKS, COUNTED, HIDE, TOLD

pytestmark = pytest.mark.browser


def dot_of(page, uuid):
    return page.locator(f"#title-{uuid}[data-unread='new reply']")


def test_a_reply_elsewhere_is_a_dot_until_it_is_looked_at(open_page, slow_site):
    chat = open_page(slow_site)
    chat.create()
    uuid = chat.url.split("/")[-2]
    other = open_page(slow_site, context=chat.page.context)
    other.create()
    chat.send("Hello")
    chat.page.evaluate(HIDE, True)
    expect(dot_of(other.page, uuid)).to_have_count(1)
    expect(other.page).to_have_title(COUNTED)
    # It is no notice, and the pages that come later know of it.
    expect(other.page.locator("#notice a")).to_have_count(0)
    other.page.goto(f"{slow_site.url}/")
    expect(other.page).to_have_title(COUNTED)
    expect(dot_of(other.page, uuid)).to_have_count(1)
    assert findings(other.page, ".sidebar") == []
    other.create()
    expect(other.page).to_have_title(COUNTED)
    chat.page.evaluate(HIDE, False)
    for page in (chat.page, other.page):
        expect(page).not_to_have_title(COUNTED)
        expect(page.locator("[data-unread]")).to_have_count(0)


def test_notify_me_is_offered_where_it_helps(open_page, slow_site):
    chat = open_page(slow_site)
    chat.page.add_init_script(ASKS)
    chat.page.set_viewport_size({"width": 390, "height": 844})
    chat.create()
    chat.send("Hello")
    running = chat.page.locator(".turn[data-state=running]")
    expect(running).to_have_count(1)
    chat.page.evaluate(HIDE, True)
    expect(running).to_have_count(0)
    chat.page.evaluate(HIDE, False)
    offer = chat.page.locator("#notice").get_by_role("button", name="Notify me")
    assert chat.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert findings(chat.page, "#notice") == []
    offer.click()
    expect(offer).to_be_hidden()

    chat.send("And again")
    expect(running).to_have_count(1)
    chat.page.evaluate(HIDE, True)
    [line] = chat.page.evaluate(TOLD, 1)
    assert line.startswith("New reply: ")
    chat.page.evaluate(HIDE, False)
    assert chat.page.evaluate(TOLD, 2) == [line, "closed"]
    # It is asked once.
    expect(offer).to_be_hidden()
