"""The second act of the demo, by keyboard and on a phone."""

import pytest
from playwright.sync_api import expect

from tests.patience import PATIENCE

from .test_access import findings

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def quick(make_site):
    with make_site(DEMO_TOKENS_PER_SECOND="1000") as running:
        yield running


def hears(act):
    """It has the focus, and htmx has taken it: before that, a key is lost."""
    expect(act).to_be_focused()
    expect(act.page.locator(".htmx-added")).to_have_count(0)


@pytest.mark.parametrize("width", [1440, 390])
def test_it_is_followed_step_by_step(open_page, quick, width):
    chat = open_page(quick, width=width)
    page, text = chat.page, chat.page.locator("#guide-text")
    page.click("form[action='/demo/'] button")
    page.wait_for_url("**/c/*/?guide")
    expect(text).to_contain_text("when the last one is answered", ignore_case=True)
    act = page.locator("#guide-act")
    expect(act).to_have_text("Edit the summary", timeout=60_000 * PATIENCE)
    assert findings(page, ".guide") == []
    act.press("Enter")
    page.fill("#summary-text", "Lance and Mia go to Kyoto in April.")
    page.get_by_role("button", name="Save as a new version").press("Enter")
    expect(text).to_contain_text("Step 2 of 3")
    # The focus goes from step to step.
    expect(act).to_have_text("Pin message #11")
    hears(act)
    page.keyboard.press("Enter")
    expect(text).to_contain_text("Step 3 of 3")
    hears(act)
    page.keyboard.press("Enter")
    expect(text).to_contain_text("hash matches")
    expect(page.locator("#guide-step")).to_contain_text("Go on below")
    expect(act).to_be_in_viewport()
    expect(chat.box).to_be_in_viewport()
    assert findings(page, ".guide") == []
    act.click()
    expect(page).to_have_url(f"{quick.url}/")
