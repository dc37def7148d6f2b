"""The rail between the panes: where the model has each message, by its stroke and in
words."""

import pytest
from playwright.sync_api import expect

from chatsite.turns import lifecycle
from memory.models import Conversation
from tests.chatsite.scenes import submit
from tests.patience import wait_for

from .test_memory import compact_up_to, open_menu
from .written import write_turns

pytestmark = pytest.mark.browser
MOTION = "no-preference"


STROKES = """(article) => ["::before", "::after"].flatMap((pseudo) => {
    const style = getComputedStyle(article, pseudo);
    const isCut = style.clipPath.includes("100%");
    return style.visibility === "visible" && !isCut ? [style.borderInlineEndStyle] : [];
})"""
PLACE = """(article) => {
    const style = getComputedStyle(article, "::before");
    const box = article.getBoundingClientRect();
    return box.left + parseFloat(style.left) + parseFloat(style.width);
}"""


@pytest.fixture
def talked(open_written):
    return open_written("I'm Lance.", "I like tea.", "Hello again.")


def draws(chat, seq, stroke):
    wait_for(lambda: chat.message(seq).evaluate(STROKES) == [stroke], what=stroke)


def lit(chat):
    found = chat.page.locator("#turns .message.counterpart")
    return found.evaluate_all("(all) => all.map((each) => each.dataset.seq)")


REDRAWN = "document.body.dispatchEvent(new Event('htmx:afterSwap', {bubbles: true}))"
# Where the stroke of an element begins and ends.
ENDS = """([element, pseudo]) => {
    const { top, bottom } = element.getBoundingClientRect();
    const stroke = getComputedStyle(element, pseudo);
    return [top + parseFloat(stroke.top), bottom - parseFloat(stroke.bottom)];
}"""


def stroke_of(locator, pseudo):
    return locator.evaluate(f"(element) => ({ENDS})([element, '{pseudo}'])")


def test_stroke_of_the_rail_shows_what_the_model_has_of_a_message(talked):
    draws(talked, 1, "solid")
    compact_up_to(talked, 4, "They met.")
    for seq in (1, 4):
        draws(talked, seq, "double")
    # One band for the summary, down to its knot, and the next begins there.
    last, first = (stroke_of(talked.message(seq), "::before") for seq in (4, 5))
    knot = stroke_of(talked.page.locator("#turns .divider"), "::after")
    assert last[1] >= knot[0] - 0.5
    assert first[0] <= knot[1] + 0.5
    draws(talked, 5, "solid")
    open_menu(talked, 6, "Hide from the model")
    draws(talked, 6, "dotted")


# Heights between the first and the last message where the rail shows its ground alone.
HOLES = """() => {
    const turns = document.getElementById("turns");
    const [first, ...rest] = turns.querySelectorAll(".message");
    const stroke = getComputedStyle(first, "::before");
    const box = first.getBoundingClientRect();
    const x = box.left + parseFloat(stroke.left) + parseFloat(stroke.width) - 3;
    const end = rest.at(-1).getBoundingClientRect().bottom;
    const holes = [];
    for (let y = box.top + 1; y < end; y += 2) {
        if (document.elementFromPoint(x, y) === turns) holes.push(y);
    }
    return holes;
}"""


def test_rail_is_one_band_beside_long_and_missing_replies(open_page, site, write_in):
    chat = open_page(site, is_home=False)
    address = chat.make()
    write_in(
        site, write_turns, address, "One.\n\nTwo.\n\n- three", "I like tea.", "So."
    )
    write_in(site, fail_turn, address)
    chat.page.set_viewport_size({"width": 1440, "height": 1400})
    chat.open(address)
    expect(chat.page.locator(".turn-failed")).to_be_visible()
    compact_up_to(chat, 2, "They met.")
    assert chat.page.evaluate(HOLES) == []
    chat.page.set_viewport_size({"width": 390, "height": 1600})
    assert chat.page.evaluate(HOLES.replace(" - 3", " - 1")) == []


def fail_turn(address):
    uuid = address.rstrip("/").rpartition("/")[2]
    made = Conversation.objects.get(uuid=uuid)
    submit(made, "Will this fail?")
    claim = lifecycle.claim(made.pk)
    lifecycle.finish(claim, lifecycle.TurnResult("failed", ""))


def test_words_replace_the_rail(talked):
    talked.page.locator("#text").hover()
    expect(talked.mark(1)).to_have_text("In full")
    actions = talked.message(1).locator(".actions")
    expect(actions).to_have_css("opacity", "0")
    talked.message(1).hover()
    expect(actions).to_have_css("opacity", "1")
    talked.page.emulate_media(media="print")
    assert talked.page.locator(".rail-key").bounding_box()["height"] > 5
    talked.page.emulate_media(media="screen")


def test_pointing_at_a_stretch_lights_it_on_both_sides(talked):
    compact_up_to(talked, 4, "They met.")
    draws(talked, 2, "double")
    talked.message(2).hover()
    # What lights it is loaded by then.
    expect(talked.right.locator(".part-summaries .counterpart")).not_to_have_count(0)
    box = talked.message(2).bounding_box()
    x = talked.message(2).evaluate(PLACE) - 3
    assert x > box["x"] + box["width"]
    talked.page.mouse.move(x, box["y"] + 10)
    wait_for(lambda: lit(talked) == ["1", "2", "3", "4"])
    expect(talked.right.locator(".part-summaries .counterpart")).not_to_have_count(0)
    expect(talked.right.locator(".part-window .counterpart")).to_have_count(0)
    # It stays so when something is redrawn under the mouse.
    talked.page.evaluate(REDRAWN)
    assert lit(talked) == ["1", "2", "3", "4"]


def test_rail_is_at_the_left_edge_on_a_phone(talked):
    talked.page.set_viewport_size({"width": 390, "height": 844})
    assert talked.message(1).evaluate(PLACE) < 16
    draws(talked, 1, "solid")
    scroller = talked.page.locator("#transcript")
    assert scroller.evaluate("(e) => e.scrollWidth <= e.clientWidth")


def test_forced_colours_leave_its_strokes(talked):
    compact_up_to(talked, 4, "They met.")
    talked.page.emulate_media(forced_colors="active")
    draws(talked, 1, "double")
    draws(talked, 5, "solid")
