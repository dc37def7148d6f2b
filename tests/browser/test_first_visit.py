"""The first visit, from the sign-up to the end of the account."""

import re

import pytest
from playwright.sync_api import expect

from .pages import ConversationPage

pytestmark = pytest.mark.browser
PASSWORD = "a window in spring"


def test_a_person_signs_up_begins_with_a_starter_and_takes_everything_away(
    browser, site, errors
):
    context = browser.new_context(accept_downloads=True, timezone_id="Asia/Tokyo")
    chat = ConversationPage(context.new_page(), site)
    chat.report_to(errors)
    page = chat.page
    page.goto(f"{site.url}/")
    page.get_by_role("link", name="Create an account").click()
    page.fill("[name=username]", "passer-by")
    for field in ("password1", "password2"):
        page.fill(f"[name={field}]", PASSWORD)
    page.click("main button.primary")
    expect(page.get_by_role("heading", name="Two views")).to_be_visible()
    expect(page.locator("#text")).to_be_focused()
    # The picture of what this is stands above what can be typed.
    demo, starter = (
        page.get_by_role("button", name=name).bounding_box()
        for name in ("Watch the demo", "planning a weekend")
    )
    assert demo["y"] < starter["y"]
    page.get_by_role("button", name="planning a weekend").click()
    chat.is_live()
    expect(chat.in_state("done")).to_have_count(1)
    expect(chat.right).to_contain_text("All 2 messages accounted for")
    page.get_by_label("More", exact=True).click()
    page.get_by_text("Export…").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Export as Markdown").click()
    assert "planning a weekend" in download.value.path().read_text()
    page.click(".sidebar .new")
    page.locator(".option > summary").click()
    page.get_by_label("Calculate", exact=True).check()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="What do you see").click()
    chat.is_live()
    expect(chat.right).to_contain_text("The model may call: Calculate")
    expect(chat.message(1)).to_contain_text("What do you see")
    # The demo model lists the sheets, each with its tokens.
    for sheet in ("Tools (1)", "Instructions", "Messages in full (1)"):
        said = re.compile(re.escape(sheet) + r", ≈ \d+ tokens: “")
        expect(chat.message(2)).to_contain_text(said)
    account = page.request.get(f"{site.url}/account/export.json").json()["account"]
    assert account["preferences"]["time_zone"] == "Asia/Tokyo"
    delete_account(page, site)
    context.close()


def delete_account(page, site):
    page.goto(f"{site.url}/account/#privacy")
    page.fill("[name=deletion-password]", PASSWORD)
    page.get_by_role("button", name="Delete my account permanently").click()
    expect(page.get_by_role("heading", name="Account deleted")).to_be_visible()
    page.goto(f"{site.url}/accounts/login/")
    page.fill("[name=username]", "passer-by")
    page.fill("[name=password]", PASSWORD)
    page.click("main button.primary")
    expect(page.get_by_role("alert")).to_be_visible()
