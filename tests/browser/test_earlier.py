"""Going back in a long conversation: pages come on the way up, stay, and stay true."""

import pytest
from playwright.sync_api import expect

from .written import write_long

pytestmark = pytest.mark.browser

# Where a message stands in the window of the transcript.
PLACE = """(message) => message.getBoundingClientRect().top"""
NOTE_MESSAGE = """() => document.addEventListener("htmx:wsAfterMessage", () => {
    document.body.dataset.synced = "";
})"""
SCROLL = "(scroller, by) => { scroller.scrollTop += by }"


@pytest.fixture(scope="module")
def address(site, write_in):
    """A conversation of 75 turns, compacted up to the last ten."""
    return site.url + write_in(site, write_long, 150)


def test_earlier_turns_come_on_the_way_up_and_are_drawn_anew_like_all(
    open_page, site, address
):
    chat = open_page(site, is_home=False)
    chat.open(address)
    scroller = chat.page.locator("#transcript")
    expect(chat.turns).to_have_count(20)
    # The message at the top stays where it is while others come above it.
    for count, top in ((40, 111), (60, 71), (75, 31)):
        scroller.evaluate(SCROLL, -100_000)
        expect(chat.turns).to_have_count(count)
        assert abs(chat.message(top).evaluate(PLACE) - scroller.evaluate(PLACE)) < 90
    scroller.evaluate(SCROLL, -100_000)
    expect(chat.mark(1)).to_have_text("Summarised (v1)")
    chat.message(3).hover()
    chat.message(3).locator(".message-menu > summary").click()
    chat.message(3).get_by_text("Hide from the model", exact=True).click()
    expect(chat.mark(3)).to_have_text("Hidden from the model")
    expect(chat.mark(1)).not_to_have_text("Summarised (v1)")
    expect(chat.message(3)).to_be_in_viewport()
    chat.send("One more")
    expect(chat.in_state("done")).to_have_count(76)


def test_earlier_turns_asked_for_before_the_first_sync_arrive(open_page, site, address):
    chat, held, requests = open_page(site), [], []
    is_held = True

    def hold(page_side):
        def pass_on(text):
            held.append((page_side, text)) if is_held else page_side.send(text)

        page_side.connect_to_server().on_message(pass_on)

    chat.page.route_web_socket("**/ws/c/**", hold)
    chat.page.route("**/messages/**", lambda route: requests.append(route))
    chat.open(address)
    expect(chat.turns).to_have_count(20)
    chat.page.locator("#transcript").evaluate(SCROLL, -100_000)
    while not (held and requests):
        chat.page.wait_for_timeout(20)
    chat.page.evaluate(NOTE_MESSAGE)
    is_held = False
    for page_side, piece in held:
        page_side.send(piece)
    expect(chat.page.locator("body[data-synced]")).to_be_attached()
    requests[0].continue_()
    expect(chat.turns).to_have_count(40)
    numbers = [int(turn.get_attribute("data-turn")) for turn in chat.turns.all()]
    assert numbers == sorted(set(numbers))
