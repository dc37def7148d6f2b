"""The demo: watched, then taken over by keyboard and on a phone."""

import re

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
    """Return whether it has the focus and htmx has taken it: before that, a key is
    lost.
    """
    expect(act).to_be_focused()
    expect(act.page.locator(".htmx-added")).to_have_count(0)


LIT = """new Promise((resolve) => {
    const lit = () => document.querySelectorAll(".counterpart").length;
    const queued = () => document.querySelectorAll("[data-state=queued]").length;
    let most = 0, since = 0;
    const look = setInterval(() => {
        most = Math.max(most, queued());
        if (lit() && !since) since = Date.now();
        if (since && !lit()) {
            clearInterval(look);
            resolve([most, Date.now() - since]);
        }
    }, 50);
})"""


def test_guide_is_watched_and_followed_step_by_step(open_page, quick):
    chat = open_page(quick)
    page, text = chat.page, chat.page.locator("#guide-text")
    page.click("form[action='/demo/'] button")
    page.wait_for_url("**/c/*/?guide")
    expect(text).to_contain_text("its beginning is summarised")
    # One message after the other, and a stop at the first summary.
    queued, lit = page.evaluate(LIT)
    assert queued <= 1
    assert 1_500 < lit < 4_000 * PATIENCE
    expect(chat.turns.last).to_be_in_viewport()
    act = page.locator("#guide-act")
    expect(act).to_have_text("Edit the summary", timeout=60_000 * PATIENCE)
    expect(page.locator(".divider").first).to_be_visible()
    expect(chat.in_state("done")).to_have_count(13)
    assert findings(page, ".guide") == []
    act.press("Enter")
    summary = page.locator("#summary-text")
    expect(summary).to_have_value(re.compile("Kyoto"))
    summary.fill(summary.input_value().replace("Kyoto", "Nara"))
    page.get_by_role("button", name="Save as a new version").press("Enter")
    expect(text).to_contain_text("Step 2:")
    pill, guide = (page.locator(x).bounding_box() for x in ("#notice", ".guide"))
    assert pill["y"] + pill["height"] <= guide["y"]

    # The rest on a phone. The focus goes from step to step.
    phone = open_page(quick, width=390, context=page.context)
    phone.page.set_viewport_size({"width": 390, "height": 844})
    phone.open(page.url)
    act, text = phone.page.locator("#guide-act"), phone.page.locator("#guide-text")
    expect(act).to_have_text("Ask: Where am I going?")
    act.focus()
    hears(act)
    phone.page.keyboard.press("Enter")
    expect(text).to_contain_text("Step 3:")
    expect(phone.turns.last).to_contain_text("Nara")
    expect(phone.turns.last).not_to_contain_text("Kyoto")
    # The last step is on the right: one question, two answers.
    page.locator(".sheet:has(.part-summaries) > .switch").click()
    page.locator("#desk").get_by_role("button", name="Ask again").click()
    beside = page.locator(".beside")
    expect(beside.locator(".given")).to_contain_text("Nara")
    expect(beside.locator(".trial .mark")).to_have_text("Complete")
    expect(beside.locator(".trial .body")).not_to_contain_text("Nara")
    expect(page.locator("#guide-text")).to_contain_text("two answers")
    phone.page.reload()
    expect(phone.page.locator("#guide-heading")).to_have_text("That is Windowpane")
    expect(act).to_be_in_viewport()
    expect(phone.box).to_be_in_viewport()
    assert findings(phone.page, ".guide") == []
    page.locator("[data-replay]").first.click()
    expect(page.locator("#replay")).to_be_visible()
    expect(page.locator(".guide")).to_be_hidden()
    act.click()
    expect(phone.page).to_have_url(f"{quick.url}/")


def test_guide_is_closed_at_once(open_page, quick):
    chat = open_page(quick)
    chat.page.click("form[action='/demo/'] button")
    chat.page.wait_for_url("**/c/*/?guide")
    chat.is_live()
    chat.page.locator(".guide").get_by_label("Close").click()
    expect(chat.page.locator(".guide")).to_have_count(0)
    sent = chat.turns.count()
    chat.page.wait_for_timeout(2_500)
    assert chat.turns.count() <= sent + 1
    assert "guide" not in chat.page.url
