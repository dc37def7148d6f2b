"""The demo: watched, then taken over in four clicks, and on a phone by keyboard."""

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


COUNT_CLICKS = """() => {
    window.clicks = 0;
    addEventListener("click", ({ isTrusted }) => { clicks += isTrusted; }, true);
}"""


def test_guide_ends_with_two_answers_after_four_clicks(open_page, quick):
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
    expect(chat.in_state("done")).to_have_count(12)
    assert findings(page, ".guide") == []
    # Four clicks, and one word that is typed. The focus goes to the field.
    page.evaluate(COUNT_CLICKS)
    act.click()
    box = page.locator("#context .in-place textarea")
    expect(box).to_be_focused()
    page.keyboard.type("Nara")
    page.locator("#context .in-place .primary").click()
    expect(page.locator("#notice p")).to_be_visible()
    pill, guide = (page.locator(x).bounding_box() for x in ("#notice", ".guide"))
    assert pill["y"] + pill["height"] <= guide["y"]
    # The page asks, and the model believes the summary.
    expect(chat.in_state("done")).to_have_count(13)
    expect(chat.turns.last).to_contain_text("Where am I going?")
    expect(chat.turns.last).to_contain_text("Nara")
    expect(chat.turns.last).not_to_contain_text("Kyoto")
    expect(text).to_contain_text("Step 2:")
    page.locator(".sheet:has(.part-summaries) > .switch").click()
    page.locator("#desk").get_by_role("button", name="Ask again").click()
    beside = page.locator(".beside")
    expect(beside.locator(".given")).to_contain_text("Nara")
    expect(beside.locator(".trial .mark")).to_have_text("Complete")
    expect(beside.locator(".trial .body")).to_contain_text("I don't know")
    expect(beside.locator(".trial .body")).not_to_contain_text("Nara")
    expect(text).to_contain_text("two answers")
    assert page.evaluate("clicks") == 4
    for box in (beside.locator(".given"), beside.locator(".trial")):
        expect(box).to_be_in_viewport()
    assert re.search(r"SHA|[$€]", beside.inner_text()) is None

    page.locator("[data-replay]").first.click()
    expect(page.locator("#replay")).to_be_visible()
    expect(page.locator(".guide")).to_be_hidden()


def test_guide_is_followed_on_a_phone(open_page, quick):
    phone = open_page(quick, width=390)
    page, text = phone.page, phone.page.locator("#guide-text")
    page.click("form[action='/demo/'] button")
    act = page.locator("#guide-act")
    expect(act).to_have_text("Edit the summary", timeout=60_000 * PATIENCE)
    act.press("Enter")
    summary = page.locator("#dialog #summary-text")
    expect(summary).to_have_value(re.compile("Kyoto"))
    summary.fill(summary.input_value().replace("Kyoto", "Nara"))
    page.get_by_role("button", name="Save as a new version").press("Enter")
    expect(text).to_contain_text("Step 2:")
    expect(phone.turns.last).to_contain_text("Nara")
    page.locator("[data-tab-to=model]").click()
    page.locator(".sheet:has(.part-summaries) > .switch").click()
    page.locator("#desk").get_by_role("button", name="Ask again").click()
    page.locator("[data-tab-to=you]").click()
    expect(page.locator(".beside .trial .body")).to_contain_text("I don't know")
    page.reload()
    expect(page.locator("#guide-heading")).to_have_text("That is Windowpane")
    expect(act).to_be_in_viewport()
    expect(phone.box).to_be_in_viewport()
    assert findings(page, ".guide") == []
    act.click()
    expect(page).to_have_url(f"{quick.url}/")


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
