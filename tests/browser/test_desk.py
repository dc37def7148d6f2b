"""The right pane as a desk: parts are switched off, texts are written in place, and the
last question is asked again.
"""

import re

import pytest
from playwright.sync_api import expect

from .test_access import findings

pytestmark = pytest.mark.browser


@pytest.fixture
def talk(chat):
    """A question, and the reply that answers it from the window."""
    chat.say("My budget is 3,200.")
    chat.say("What is my budget?")
    return chat


def part(page, kind):
    return page.locator(f".sheet:has(.part-{kind})")


def test_second_answer_is_two_clicks_from_a_switch(talk):
    page, right = talk.page, talk.right
    part(page, "window").locator("> .switch").click()
    desk = right.locator("#desk")
    expect(desk).to_contain_text("1 change")
    expect(desk).to_contain_text(re.compile(r"≈\s\d+ → \d+"))
    expect(part(page, "window").locator("> .switch")).to_have_attribute(
        "aria-checked", "false"
    )
    assert findings(page, "#context") == []
    desk.get_by_role("button", name="Ask again").click()
    beside = page.locator(".beside")
    expect(beside.locator(".given")).to_contain_text("3,200")
    # It streams, and the reply that it stands beside is not shown twice.
    expect(beside.locator(".trial .body")).not_to_be_empty()
    expect(page.locator("#message-4")).to_be_hidden()
    expect(beside.locator(".trial .mark")).to_have_text("Complete")
    expect(beside.locator(".trial .body")).not_to_contain_text("3,200")
    assert page.evaluate("CSS.highlights.get('differs').size") > 0
    assert findings(page, ".beside") == []
    boxes = [beside.locator(x).bounding_box() for x in (".given", ".trial")]
    assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
    beside.get_by_role("button", name="Close").click()
    expect(page.locator("#message-4")).to_be_visible()
    desk.get_by_role("button", name="Undo").click()
    expect(desk).to_have_count(0)


def test_answer_is_chosen_as_the_reply(talk):
    page = talk.page
    part(page, "window").locator("> .switch").click()
    page.locator("#desk").get_by_role("button", name="Ask again").click()
    opened = page.url
    page.get_by_role("button", name="Use this one").click()
    page.wait_for_url(lambda url: url.split("?")[0] != opened.split("?")[0])
    talk.is_live()
    expect(page.locator("#message-4")).not_to_contain_text("3,200")


def test_instructions_are_written_where_they_stand(talk):
    page, right = talk.page, talk.right
    part(page, "system").locator("summary").click()
    part(page, "system").locator("pre").first.click()
    box = right.locator(".in-place textarea")
    expect(box).to_be_focused()
    expect(page.locator("#text")).to_have_value("")
    expect(page.locator("#editing")).to_be_hidden()
    box.fill("Answer like a pirate.")
    # What is being written is not lost when the pane is drawn again.
    part(page, "window").locator("> .switch").click()
    expect(right.locator("#desk")).to_be_visible()
    expect(box).to_have_value("Answer like a pirate.")
    box.press("Control+Enter")
    expect(right.locator(".in-place")).to_have_count(0)
    expect(part(page, "system")).to_contain_text("Answer like a pirate.")
    page.reload()
    expect(part(page, "system")).to_contain_text("Answer like a pirate.")


def test_refused_text_stays_in_its_field(talk):
    page, right = talk.page, talk.right
    part(page, "system").locator("summary").click()
    part(page, "system").locator("pre").first.click()
    box = right.locator(".in-place textarea")
    box.evaluate("field => { field.maxLength = 100000; }")
    box.fill("x" * 50_000)
    right.locator(".in-place .primary").click()
    expect(page.locator("#notice [role=alert]")).to_be_visible()
    expect(box).to_have_value("x" * 50_000)


def test_message_is_dropped_on_the_pinned_ones(talk):
    page, right = talk.page, talk.right
    page.locator("#message-1").hover()
    page.locator("#context").hover()
    page.locator("#message-1 a.seq").dispatch_event("dragstart")
    place = right.locator("[data-drop=pin]")
    expect(place).to_be_visible()
    place.dispatch_event("drop")
    expect(page.locator("#notice")).to_contain_text("Message #1 is pinned")
    expect(page.locator("#message-1 .mark-pinned")).to_be_visible()


def test_switches_work_by_keyboard_and_on_a_phone(talk, open_page, site):
    phone = open_page(site, context=talk.page.context)
    phone.page.set_viewport_size({"width": 390, "height": 844})
    phone.open(talk.page.url)
    phone.page.locator("[data-tab-to=model]").click()
    switch = part(phone.page, "system").locator("> .switch")
    switch.focus()
    phone.page.keyboard.press("Space")
    expect(phone.page.locator("#desk")).to_be_in_viewport()
    expect(phone.page.locator("#desk")).to_contain_text("1 change")
    # The other page shows it, too.
    expect(talk.right.locator("#desk")).to_contain_text("1 change")
    width = phone.page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390
