"""Floating parts cover no text: bars of actions, notices, the guide, closed menus."""

import pytest
from playwright.sync_api import expect

from tests.patience import PATIENCE

from .test_memory import compact_up_to, open_menu

pytestmark = pytest.mark.browser

# Texts on the screen, with what lies over them. A text that is out of sight has its own
# element nowhere below the point.
COVERED = """() => {
    const found = new Map();
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const { currentNode: text } = texts, owner = text.parentElement;
        if (!text.data.trim() || owner.closest("template, option, svg")) continue;
        const range = new Range();
        range.selectNodeContents(text);
        for (const { left, right, top, bottom } of range.getClientRects()) {
            for (const x of [left + 2, (left + right) / 2, right - 2]) {
                const stack = document.elementsFromPoint(x, (top + bottom) / 2);
                if (!stack.includes(owner)) continue;
                const over = stack[0];
                if (owner.contains(over) || over.contains(owner)) continue;
                found.set(text.data.trim(), over.outerHTML.slice(0, 120));
            }
        }
    }
    return Object.fromEntries(found);
}"""
LONG = "One paragraph with several words in it.\n\n" * 3 + "- one\n- two"
TURNS = (
    "I'm planning a trip to Kyoto in spring.",
    "I like tea.",
    LONG,
    "A farewell " * 30,
)


def covers_nothing(page):
    assert page.evaluate(COVERED) == {}, page.url


@pytest.mark.parametrize("width", [1440, 390])
def test_bars_of_actions_lie_in_the_gaps(open_written, width):
    chat = open_written(*TURNS, width=width)
    compact_up_to(chat, 2, "A trip.")
    numbers = range(1, 2 * len(TURNS) + 1)
    for seq in numbers:
        message = chat.message(seq)
        message.scroll_into_view_if_needed()
        message.locator(".body").hover(position={"x": 5, "y": 5})
        expect(message.locator(".actions")).to_have_css("opacity", "1")
        covers_nothing(chat.page)
        # What is at the edge of the bar is a part of it.
        expect(message.locator(".actions > .seq")).to_be_in_viewport(ratio=1)


def test_bar_is_shown_for_the_pointed_message_only(open_written):
    chat = open_written("One", "Two")
    chat.message(1).locator(".body").click()
    chat.message(3).locator(".body").hover()
    expect(chat.message(3).locator(".actions")).to_have_css("opacity", "1")
    expect(chat.message(1).locator(".actions")).to_have_css("opacity", "0")


@pytest.mark.parametrize("width", [1440, 1000, 390])
def test_notice_lies_over_nothing_and_moves_no_text(open_written, width):
    chat = open_written(*TURNS, width=width)
    places = [chat.message(8).locator(".body"), chat.page.locator("#composer .box")]
    before = [place.bounding_box() for place in places]
    open_menu(chat, 7, "Pin")
    expect(chat.page.locator("#notice p")).to_be_visible()
    chat.page.mouse.move(0, 0)
    covers_nothing(chat.page)
    # Its own mark above the bubble is new.
    assert [place.bounding_box() for place in places][1:] == before[1:]
    assert abs(places[0].bounding_box()["y"] - before[0]["y"]) <= 1


@pytest.mark.parametrize("width", [1440, 390])
def test_notice_and_guide_stand_side_by_side(open_page, guided, width):
    chat = open_page(guided, width=width)
    page = chat.page
    page.click("form[action='/demo/'] button")
    act = page.locator("#guide-act")
    expect(act).to_have_text("Edit the summary", timeout=60_000 * PATIENCE)
    covers_nothing(page)
    act.click()
    summary = page.locator("#summary-text")
    summary.fill(summary.input_value().replace("Kyoto", "Nara"))
    page.get_by_role("button", name="Save as a new version").click()
    expect(page.locator("#notice p")).to_be_visible()
    covers_nothing(page)
    act.click()
    expect(chat.turns.last).to_contain_text("Nara")
    covers_nothing(page)


@pytest.fixture(scope="module")
def guided(make_site):
    with make_site(DEMO_TOKENS_PER_SECOND="1000") as running:
        yield running


@pytest.mark.parametrize("width", [1440, 1000, 390])
@pytest.mark.parametrize("path", ["", "account/"])
def test_pages_have_nothing_over_their_texts(open_page, site, path, width):
    page = open_page(site, width=width).page
    page.goto(f"{site.url}/{path}")
    covers_nothing(page)
