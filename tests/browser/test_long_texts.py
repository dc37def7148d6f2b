"""Pages of the longest texts there can be keep their socket: the longest page under
each server, and each text under the site's own; chatsite/live has them all.
"""

import json

import pytest
from playwright.sync_api import expect

from tests.patience import PATIENCE
from tests.servers import PlainSite, Site

from .pages import USER

pytestmark = pytest.mark.browser

FILL = """
import json, sys
from django.contrib.auth import get_user_model
from django.db import transaction
from chatsite.turns import commands, lifecycle
from memory import transcript
owner = get_user_model().objects.get(username={user!r})
made = transcript.create_conversation(owner, title="Long", policy={{"enabled": False}})
for number in range({turns}):
    text = {message}
    # Together, or the sweep of the site that is running would claim it.
    with transaction.atomic():
        commands.submit_message(made, text=text, client_id=str(number))
        claim = lifecycle.claim(made.pk)
    lifecycle.finish(claim, lifecycle.Result("done", {reply}))
print(json.dumps(str(made.uuid)))
"""
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


@pytest.fixture(scope="module")
def server(request, make_site):
    with make_site(kind=getattr(request, "param", Site), **ENV) as running:
        yield running


@pytest.fixture
def open_filled(server, open_page):
    """open_filled(turns, message, reply) -> the page of such a conversation. Both texts
    are expressions with the turn's `number`."""

    def open_filled(turns, message, reply):
        code = FILL.format(user=USER, turns=turns, message=message, reply=reply)
        uuid = json.loads(server.manage("shell", "-v", "0", "-c", code))
        page = open_page(server)
        page.page.add_init_script(WATCH)
        page.open(f"{server.url}/c/{uuid}/")
        return page

    return open_filled


def has_lived(page):
    page.is_live()
    assert not DIED.intersection(page.page.evaluate("socketEnds"))


def check(page, turns):
    """What was sent over the socket is drawn, and the socket goes on."""
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


@pytest.mark.parametrize(
    "server", [Site, PlainSite], ids=["serve.py", "daphne"], indirect=True
)
def test_thirty_turns_with_replies_of_64_kb(open_filled):
    reply = (
        "(f'# Part {number}\\n\\nAll about **harbours** & more.\\n\\n' * 2000)[:65_536]"
    )
    page = open_filled(29, "f'Question {number}'", reply)
    check(page, 29)
    assert len(page.transcript()[1]["text"]) == 65_536


# The first takes most bytes on the wire, the second most elements on the page.
@pytest.mark.parametrize("char", ['"', "*a* "])
def test_messages_as_long_as_can_be(open_filled, char):
    message = f"({char!r} * {LONGEST})[:{LONGEST}]"
    page = open_filled(1, message, message)
    check(page, 1)
    assert len(page.transcript()[0]["text"]) == LONGEST


def test_the_longest_message_can_be_sent(open_filled):
    page = open_filled(1, "'Hello'", "'Hi'")
    text = "\\\u0001\U0001f98a\n" * (LONGEST // 4 - 1) + "end."
    page.box.evaluate(TYPE, text)
    page.page.locator("#send").click()
    expect(page.turns).to_have_count(2, timeout=LONG)
    expect(page.in_state("done")).to_have_count(2, timeout=LONG)
    assert page.transcript()[-2]["text"].endswith("end.")
    has_lived(page)
