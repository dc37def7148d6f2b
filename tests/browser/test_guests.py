"""A reader without an account tries a shared moment on a copy of their own."""

import pytest
from playwright.sync_api import expect

from .conftest import open_tab
from .pages import ConversationPage
from .test_access import WIDE, findings
from .test_sharing import share

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def site(make_site):
    env = {"DEMO_TOKENS_PER_SECOND": "200", "SHARE_GUESTS": "2", "EXTRAS": "lab"}
    with make_site(**env) as running:
        yield running


def test_a_reader_goes_on_in_a_copy_as_a_guest(
    open_written, take_context, site, errors
):
    owner = open_written("My budget is 3,200 euros.", "I fly in April.")
    link = share(owner, with_view=True, with_copy=True)
    page = open_tab(take_context(**WIDE), site)
    guest = ConversationPage(page, site)
    guest.report_to(errors)
    page.goto(link)
    assert findings(page) == []
    # Another moment, on a page that has no message box.
    page.locator("#context select").first.select_option("2")
    expect(page.locator("#context")).not_to_contain_text("I fly in April.")
    page.locator("#context select").first.select_option("4")
    expect(page.locator("#context")).to_contain_text("I fly in April.")
    page.get_by_role("button", name="Try it on a copy").click()
    guest.is_live()
    expect(page.locator("#turns .message")).to_have_count(4)
    expect(guest.right).to_contain_text("My budget is 3,200 euros.")
    guest.box.fill("What is my budget?")
    guest.box.press("Enter")
    expect(page.locator("#turns .message").last).to_contain_text("3,200 euros")
    # The same question without the messages before; another conversation is refused.
    page.locator(".sheet > .switch").last.click()
    page.locator("#desk").get_by_role("button", name="Ask again").click()
    expect(page.locator(".beside .trial .body")).to_contain_text("I don't know")
    # What is refused is not offered: no button to attach files, nor the other menus.
    expect(page.locator("#attach")).to_be_hidden()
    page.locator("header.bar > .menu > summary").click()
    menu = page.locator("header.bar > .menu")
    expect(menu.get_by_role("button", name="Delete permanently")).to_be_visible()
    for name in ("Memory settings…", "Tools…", "Share…"):
        expect(menu.get_by_text(name)).to_be_hidden()
    page.keyboard.press("Escape")
    copy = guest.url
    page.locator(".beside").get_by_role("button", name="Use this one").click()
    expect(page).not_to_have_url(copy)
    expect(page.locator("#turns .message").last).to_contain_text("I don't know")
    assert errors == []
    page.goto(site.url)
    expect(page.get_by_role("heading")).to_have_text("Not for guests")
    # The browser reports the status of the page.
    assert [each for each in errors if "403" not in each] == []
    errors.clear()
    page.get_by_role("link", name="Back to your copy").click()
    expect(page.locator("#turns .message")).to_have_count(6)
