"""The right pane as a desk: parts are switched off, texts are written in place, and the
last question is asked again.
"""

import re

import pytest
from playwright.sync_api import expect

from tests.patience import PATIENCE

from .test_access import findings

pytestmark = pytest.mark.browser


@pytest.fixture
def talk(chat):
    """A question, and the reply that answers it from the window."""
    chat.say("My budget is 3,200.")
    chat.say("What is my budget?")
    # The pane is drawn again after the reply: a click in between is lost.
    expect(chat.right).to_contain_text("All 4 messages accounted for")
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
    expect(desk).to_be_hidden()


COUNT_CLICKS = """() => {
    window.clicks = 0;
    addEventListener("click", ({ isTrusted }) => { clicks += isTrusted; }, true);
}"""
# From the second click until the second answer has words.
UNTIL_ANSWER = """() => new Promise((resolve) => {
    addEventListener("click", () => {
        const since = performance.now();
        const look = () => document.querySelector(".beside .trial .body")?.textContent
            ? resolve(performance.now() - since) : requestAnimationFrame(look);
        look();
    }, { once: true, capture: true });
})"""


def test_second_answer_is_two_clicks_from_an_edited_text(talk):
    page, right = talk.page, talk.right
    part(page, "system").locator("summary").click()
    desk = right.locator("#desk")
    expect(desk).to_be_hidden()
    page.evaluate(COUNT_CLICKS)
    part(page, "system").locator("pre").first.click()
    box = right.locator(".in-place textarea")
    expect(box).to_be_focused()
    box.fill("Answer like a pirate.")
    assert findings(page, "#context") == []
    timing = page.evaluate_handle(f"({{ until: ({UNTIL_ANSWER})() }})")
    desk.get_by_role("button", name="Ask again").click()
    assert timing.evaluate("({ until }) => until") <= 1_000 * PATIENCE
    beside = page.locator(".beside")
    expect(beside.locator(".given")).to_contain_text("3,200")
    expect(beside.locator(".trial .mark")).to_have_text("Complete")
    assert page.evaluate("clicks") == 2
    expect(page.locator("dialog[open]")).to_have_count(0)
    # The words were stored before, and the request of the answer has them.
    expect(part(page, "system")).to_contain_text("Answer like a pirate.")
    expect(desk).to_contain_text("1 change")


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
    # Nor is anything asked without it.
    right.get_by_role("button", name="Ask again").click()
    expect(page.locator("#notice [role=alert]")).to_be_visible()
    expect(box).to_have_value("x" * 50_000)
    expect(page.locator(".beside")).to_have_count(0)


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


def test_pane_is_as_wide_as_its_edge_is_moved(talk):
    page, right = talk.page, talk.right
    right.hover()
    splitter = page.get_by_role("separator", name="Width of the right pane")
    expect(splitter).to_be_visible()

    def width():
        return round(right.bounding_box()["width"])

    before = width()
    assert splitter.get_attribute("aria-valuenow") == str(before)
    splitter.press("ArrowLeft")
    assert width() == before + 20
    splitter.press("Home")
    assert width() == 360
    splitter.press("End")
    assert width() == 720  # half of the window
    assert splitter.get_attribute("aria-valuenow") == "720"
    assert findings(page, "main") == []
    box = splitter.bounding_box()
    page.mouse.move(box["x"] + 4, box["y"] + 300)
    page.mouse.down()
    page.mouse.move(box["x"] + 104, box["y"] + 300, steps=4)
    page.mouse.up()
    assert 610 <= width() <= 630
    wide = width()
    page.reload()
    assert width() == wide
    page.set_viewport_size({"width": 1000, "height": 700})
    assert width() == 500
    page.set_viewport_size({"width": 700, "height": 700})
    expect(splitter).to_be_hidden()


def ask_slowly(chat):
    """Ask the last question again of a model that writes for two seconds; its card."""
    chat.say("What is my budget?")
    part(chat.page, "window").locator("> .switch").click()
    chat.page.locator("#desk").get_by_role("button", name="Ask again").click()
    trial = chat.page.locator(".beside .trial[aria-busy]")
    expect(trial.locator(".body .plain")).not_to_be_empty()
    return trial


def test_switches_pressed_while_an_answer_is_on_its_way_all_count(talk):
    page = talk.page
    switches = [part(page, kind).locator("> .switch") for kind in ("system", "window")]
    # The pane is drawn again after each answer, so all are pressed before the first.
    page.evaluate(
        """() => {
            const switchOf = (kind) => document.querySelector(
                `#context .sheet:has(.part-${kind}) > .switch`);
            for (const kind of ["system", "window", "system"]) switchOf(kind).click();
        }"""
    )
    expect(talk.right.locator("#desk")).to_contain_text("1 change")
    expect(switches[0]).to_have_attribute("aria-checked", "true")
    expect(switches[1]).to_have_attribute("aria-checked", "false")


def test_question_is_asked_again_after_a_switch_that_is_on_its_way(talk):
    page = talk.page
    part(page, "system").locator("> .switch").click()
    expect(talk.right.locator("#desk")).to_be_visible()

    def slow_down(route):
        page.wait_for_timeout(500)
        route.continue_()

    page.route("**/desk/", slow_down)
    page.evaluate(
        """() => {
            const buttons = [".sheet:has(.part-window) > .switch", "#desk .primary"];
            for (const each of buttons) document.querySelector(each).click();
        }"""
    )
    trial = page.locator(".beside .trial")
    expect(trial.locator(".mark")).to_have_text("Complete")
    expect(trial).not_to_contain_text("3,200")


def test_second_answer_is_at_its_reply_which_another_one_shows_again(talk):
    page, ask = talk.page, talk.page.locator("#desk .primary")
    part(page, "window").locator("> .switch").click()
    # Before that, the hidden button can still have the address of the reply before.
    expect(ask).to_be_visible()
    address = ask.get_attribute("hx-post")
    ask.click()
    beside = page.locator(".beside")
    expect(beside.locator(".mark").first).to_have_text("Complete")
    talk.say("And what else do you know?")
    # As asked by a page that was not drawn with the newest reply yet.
    again = "htmx.ajax('POST', '{}', {{target: '#turns', swap: 'beforeend'}})"
    page.evaluate(again.format(address))
    expect(page.locator(".turn:has(#message-4) + .beside")).to_have_count(1)
    expect(beside.locator(".mark").first).to_have_text("Complete")
    expect(page.locator("#message-6")).to_be_visible()
    page.evaluate(again.format(address.replace("/4/", "/6/")))
    expect(page.locator(".turn:has(#message-6) + .beside")).to_have_count(1)
    expect(page.locator("#message-4")).to_be_visible()
    expect(page.locator("#message-6")).to_be_hidden()


def test_second_answer_stays_when_the_turns_are_drawn_again(slow_chat):
    ask_slowly(slow_chat)
    # A sync, as after a summary or a change in another tab.
    slow_chat.page.evaluate("document.dispatchEvent(new Event('connection:doubt'))")
    trial = slow_chat.page.locator(".beside .trial")
    expect(trial.locator(".mark")).to_have_text("Complete")
    expect(trial).to_contain_text("written")
    expect(trial.locator(".meta").last).not_to_contain_text(re.compile(r"·\s*$"))
    order = slow_chat.page.locator("#turns > :is(.turn, .beside)")
    expect(order.last).to_have_class("beside")


def test_second_answer_is_closed_while_it_is_being_written(slow_chat):
    ask_slowly(slow_chat)
    page, closed = slow_chat.page, slow_chat.page.locator(".beside")
    closed.get_by_role("button", name="Close").click()
    expect(closed).to_have_count(0)
    # What comes of it has no place any more, which is no error.
    expect(slow_chat.status).to_have_text("The other answer to #2 is ready")
    expect(page.locator("#message-2")).to_be_visible()
