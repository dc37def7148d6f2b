"""A rule in the user's hands: kept with one tap, edited in place, removed, restored."""

import pytest
from playwright.sync_api import expect

from .test_access import is_clean

pytestmark = pytest.mark.browser

WORDS = "Always name your sources."


@pytest.fixture
def stated(chat):
    chat.say(f"Hello. {WORDS}")
    return chat


def offer(chat):
    return chat.message(1).locator(".rule-offer")


def rules(chat):
    return chat.right.locator(".part-rules")


def test_fact_is_asked_for_as_a_fact(chat):
    """The text is the first suggestion of the home page; facts are switched off."""
    chat.memory_settings()
    chat.page.locator("#policy [name=facts]").select_option("off")
    chat.page.get_by_role("button", name="Apply").click()
    expect(chat.page.locator("#dialog")).to_be_hidden()
    chat.say("Remember: I live in Zurich, I am a vegetarian, and my budget is 900.")
    expect(offer(chat)).to_contain_text("Remember this in this conversation?")
    offer(chat).get_by_role("button", name="Yes").click()
    expect(chat.message(1)).to_contain_text("Remembered in this conversation:")


def test_a_rule_is_kept_with_one_tap_edited_and_removed(stated):
    expect(offer(stated)).to_contain_text("Keep this as a rule?")
    expect(rules(stated)).to_have_count(0)
    offer(stated).get_by_role("button", name="Yes").click()
    expect(rules(stated).locator("q")).to_have_text(WORDS)
    stated.open_sheet("rules")
    # As it is sent: a day has no hour in the reader's time zone.
    day = rules(stated).locator("time")
    expect(day).to_have_text(day.get_attribute("datetime"))
    expect(offer(stated)).to_have_count(0)

    rules(stated).locator("q").click()
    box = rules(stated).locator(".in-place textarea")
    expect(box).to_be_focused()
    expect(stated.page.locator("#text")).to_have_value("")
    expect(rules(stated).locator("q")).to_be_hidden()
    box.fill("Name two sources.")
    box.press("Control+Enter")
    expect(rules(stated).locator("q")).to_have_text("Name two sources.")
    expect(box).to_have_count(0)
    # One sees at once that the next request is another, and can take it back.
    expect(stated.right.locator("#desk")).to_contain_text("2 changes")
    stated.page.locator("#notice").get_by_text("Undo").click()
    expect(rules(stated).locator("q")).to_have_text(WORDS)
    rules(stated).get_by_role("button", name="Edit the rule").click()
    box.fill("Name two sources.")
    rules(stated).get_by_role("button", name="Save").click()
    expect(rules(stated).locator("q")).to_have_text("Name two sources.")

    rules(stated).get_by_role("button", name="Remove the rule").click()
    expect(rules(stated)).to_have_count(0)
    stated.page.locator("#notice").get_by_text("Undo").click()
    expect(rules(stated).locator("q")).to_have_text("Name two sources.")


def test_rules_pass_the_accessibility_checks(stated):
    is_clean(stated.page)
    offer(stated).get_by_role("button", name="Yes").click()
    expect(rules(stated).locator("q")).to_have_text(WORDS)
    stated.open_sheet("rules")
    is_clean(stated.page)
