"""Sources of an answer: terms are pointed at, touched, or listed."""

import re

import pytest
from playwright.sync_api import expect

from tests.chatsite.scenes import answer, submit

from .test_access import findings

pytestmark = pytest.mark.browser

SIZES = "Object.fromEntries([...CSS.highlights].map(([name, all]) => [name, all.size]))"
MIDDLE = """(name) => {
    const box = [...CSS.highlights.get(name)][0].getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2];
}"""


def write(address):
    from memory.models import Conversation

    uuid = address.rstrip("/").rpartition("/")[2]
    made = Conversation.objects.get(uuid=uuid)
    submit(made, "We stay at the Hotel Zubrowka.\n\nIt costs $2,300.")
    answer(made, "Fine.")
    submit(made, "What do you know?")
    answer(made, "It costs **2300 dollars**, reference TX-99871.")


@pytest.fixture
def told(chat, write_in, site):
    """Reply 4 has a term of message 1 and one that was never sent."""
    write_in(site, write, chat.url)
    chat.open(chat.url)
    return chat


def sizes(page):
    return page.evaluate(SIZES)


def look(told):
    """Move the mouse on reply 4 until its terms are marked."""
    body = told.message(4).locator(".body")
    for _ in range(40):
        body.hover(position={"x": 3, "y": 3})
        body.hover(position={"x": 6, "y": 3})
        if sizes(told.page).get("grounded"):
            return
        told.page.wait_for_timeout(250)
    raise AssertionError("no term was marked")


def test_term_lights_its_source_and_leads_to_it(told):
    page, right = told.page, told.right
    look(told)
    assert sizes(page)["nowhere"] == 1
    body = told.message(4).locator(".body")
    page.mouse.move(*page.evaluate(MIDDLE, "nowhere"))
    expect(body).to_have_attribute("title", re.compile("TX-99871.*not in what the"))
    page.mouse.move(*page.evaluate(MIDDLE, "grounded"))
    expect(body).to_have_attribute("title", re.compile(r"2300 dollars.*#1"))
    expect(told.message(1)).to_have_class(re.compile(r"\borigin\b"))
    # The line, and the words on both sides.
    assert (sizes(page)["origin"], sizes(page)["lit"]) >= (1, 2)
    page.mouse.click(*page.evaluate(MIDDLE, "grounded"))
    line = told.message(4).locator("p.grounding")
    expect(line).to_contain_text("2300 dollars")
    assert findings(page, "p.grounding") == []
    line.get_by_role("link").click()
    source = right.locator('[data-key="seen-1"]')
    expect(source).to_have_attribute("open", "")
    expect(right.locator("li.origin")).to_contain_text("$2,300")
    expect(right.locator("#shown-reply")).to_have_value("4")


def test_list_of_a_reply_is_for_the_keyboard_too(told):
    page, right = told.page, told.right
    told.open(f"{told.url.split('?')[0]}?reply=4")
    right.locator(".grounded > summary").focus()
    page.keyboard.press("Enter")
    expect(right.locator(".grounding li")).to_have_count(2)
    expect(right.locator(".grounding li").nth(1)).to_contain_text(
        "not in what the model"
    )
    right.locator(".grounding a").focus()
    expect(told.message(1)).to_have_class(re.compile(r"\borigin\b"))
    page.keyboard.press("Enter")
    expect(right.locator('[data-key="seen-1"]')).to_have_attribute("open", "")
    expect(right.locator("li.origin")).to_contain_text("$2,300")
    page.evaluate("htmx.trigger('#shown-reply', 'change')")
    expect(right.locator(".grounding li")).to_have_count(2)
    expect(right.locator('[data-key="seen-1"]')).to_have_attribute("open", "")
    expect(right.locator("li.origin")).to_contain_text("$2,300")
    assert findings(page, "#context") == []
