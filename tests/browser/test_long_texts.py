"""Pages of the longest texts there can be keep their socket: the longest page under
each server, and each text under the site's own; chatsite/live has them all.
"""

import pytest
from playwright.sync_api import expect

from tests.patience import PATIENCE
from tests.servers import PlainSite, Site

from .written import write_texts

pytestmark = pytest.mark.browser

LONGEST = 32_000
ENV = {"DEMO_TOKENS_PER_SECOND": "2000", "CONTEXT_WINDOW": "1000000"}
# Without a goodbye, too big, failed: not the page, which asks again when it is unsure.
DIED = {1006, 1009, 1011}
LONG = 60_000 * PATIENCE
TYPE = """(box, text) => {
    box.value = text; box.dispatchEvent(new Event("input", { bubbles: true })) }"""
WATCH = """window.socketEnds = [];
    document.addEventListener("htmx:wsClose", ({ detail }) =>
        socketEnds.push(detail.event.code))"""


@pytest.fixture(scope="module", params=[Site, PlainSite], ids=["serve.py", "daphne"])
def server(request, make_site):
    with make_site(kind=request.param, **ENV) as running:
        yield running


@pytest.fixture
def open_filled(server, open_page, write_in):
    """open_filled((message, reply), …) -> the page of a conversation with them."""

    def open_filled(*texts):
        page = open_page(server, is_home=False)
        page.page.add_init_script(WATCH)
        page.open(server.url + write_in(server, write_texts, texts))
        return page

    return open_filled


def has_lived(page):
    page.is_live()
    assert not DIED.intersection(page.page.evaluate("socketEnds"))


def check(page, turns):
    """Check that a message sent over the socket is drawn, and that the socket stays
    open.
    """
    expect(page.turns).to_have_count(turns)
    marked = "document.querySelector('#turns .turn').dataset.drawn = 'outdated'"
    page.page.evaluate(marked)
    first = page.turns.first
    page.page.evaluate("document.dispatchEvent(new Event('connection:doubt'))")
    expect(first).not_to_have_attribute("data-drawn", "outdated", timeout=LONG)
    page.send("Still here?")
    expect(page.turns).to_have_count(turns + 1, timeout=LONG)
    expect(page.turns.last).to_have_attribute("data-state", "done", timeout=LONG)
    has_lived(page)


def test_twenty_turns_with_replies_of_64_kb(open_filled):
    more = "All about **harbours** & more.\n\n" * 2_200
    replies = (f"# Part {number}\n\n{more}"[:65_536] for number in range(19))
    page = open_filled(*((f"Question {n}", reply) for n, reply in enumerate(replies)))
    check(page, 19)
    assert len(page.transcript()[1]["text"]) == 65_536


@pytest.mark.parametrize("server", [Site], ids=["serve.py"], indirect=True)
class TestOneText:
    # The first takes most bytes on the network, the second most elements on the page.
    @pytest.mark.parametrize("char", ['"', "*a* "])
    def test_messages_as_long_as_can_be(self, open_filled, char):
        message = (char * LONGEST)[:LONGEST]
        page = open_filled((message, message))
        check(page, 1)
        assert len(page.transcript()[0]["text"]) == LONGEST

    def test_the_longest_message_can_be_sent(self, open_filled):
        page = open_filled(("Hello", "Hi"))
        # Most bytes in JSON, in one paragraph.
        text = "\\\u0001\U0001f98a " * (LONGEST // 4 - 1) + "end."
        page.box.evaluate(TYPE, text)
        page.page.locator("#send").click()
        expect(page.turns).to_have_count(2, timeout=LONG)
        expect(page.in_state("done")).to_have_count(2, timeout=LONG)
        assert page.transcript()[-2]["text"].endswith("end.")
        has_lived(page)
