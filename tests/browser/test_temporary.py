"""A temporary conversation: switched on at home, kept by a reload, gone at log-out."""

import pytest
from playwright.sync_api import expect

from .test_access import is_clean

pytestmark = pytest.mark.browser


@pytest.fixture
def fleeting(open_page, site):
    """One with a reply, begun on the home page."""
    chat = open_page(site)
    page = chat.page
    page.get_by_label("Temporary conversation").check()
    chat.box.fill("I'm Lance.")
    chat.box.press("Enter")
    page.wait_for_url("**/c/*/")
    expect(chat.in_state("done")).to_have_count(1)
    return chat


def test_temporary_conversation_is_labelled_and_leaves_no_draft(fleeting):
    page = fleeting.page
    note = page.locator(".temporary")
    expect(note).to_contain_text("Deleted")
    expect(page.locator("#conversation-title")).to_have_text("Temporary conversation")
    address = page.url.removeprefix(fleeting.site.url)
    expect(page.locator(f'#conversation-list a[href="{address}"]')).to_have_count(0)
    fleeting.box.fill("Not sent yet")
    kept = page.evaluate(
        "Object.keys(localStorage).join() + JSON.stringify(localStorage)"
    )
    assert "Not sent" not in kept
    page.reload()
    fleeting.is_live()
    expect(fleeting.box).to_have_value("Not sent yet")
    expect(fleeting.message(2)).to_be_visible()
    expect(fleeting.message(2).locator(".feedback")).to_have_count(0)
    note.locator("summary").click()
    expect(note).to_contain_text("can no longer be shown or proved")
    is_clean(page, ".temporary")


def test_deleting_it_leads_home_and_leaves_nothing(fleeting, errors):
    page, address = fleeting.page, fleeting.url
    page.locator(".temporary > summary").click()
    page.locator(".temporary").get_by_role("button", name="Delete permanently").click()
    page.wait_for_url(f"{fleeting.site.url}/")
    assert page.request.get(address).status == 404
    # What the page asked for while it went.
    errors[:] = [text for text in errors if "404" not in text]
