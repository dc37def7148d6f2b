"""Cards of tools on the page: folded and open, live, to answer, in both languages."""

import re

import pytest
from playwright.sync_api import expect

from .test_access import PHONE, is_clean
from .tool_scenes import make, make_long

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def made(site, write_in):
    return write_in(site, make)


@pytest.fixture
def chat(open_page, site, made):
    page = open_page(site, is_home=False)
    page.open(site.url + made[0])
    return page


def card(chat, name):
    title = chat.page.locator(f".tool-name[title='{name}']")
    return chat.page.locator(".tool-card", has=title)


def open_all(chat):
    chat.page.evaluate(
        "for (const card of document.querySelectorAll('.tool-card')) card.open = true"
    )


def test_a_call_opens_to_its_arguments_and_its_result(chat):
    found = card(chat, "search_transcript").first
    expect(found.locator("> summary")).to_contain_text("query: budget")
    expect(found.locator(".tool-body")).to_be_hidden()
    found.locator("> summary").click()
    expect(found).to_contain_text('"query": "budget"')
    expect(found).to_contain_text("#2: 3,200 euros")
    expect(found).to_contain_text("You allowed this call")
    # No call and no result is a bubble.
    assert chat.page.locator("#turns article.tool").count() == 0


def test_a_link_to_a_result_opens_its_card(chat, site, made):
    chat.open(f"{site.url}{made[0]}#message-4")
    expect(card(chat, "read_messages").locator(".tool-answer")).to_be_visible()


def test_a_long_result_is_a_file(chat):
    found = card(chat, "read_messages")
    found.locator("> summary").click()
    expect(found).to_contain_text("The model gets")
    with chat.page.expect_download() as download:
        found.get_by_text("Download all").click()
    text = download.value.path().read_text()
    assert text == "#1 You: Hi! I'm Lance.\n" * 2_000
    assert re.fullmatch(
        r"conversation-\w{8}\.4\.txt", download.value.suggested_filename
    )


def test_result_of_a_tool_runs_nothing_on_the_page(chat):
    found = card(chat, "fetch_page")
    found.locator("> summary").click()
    expect(found.locator(".tool-answer pre")).to_contain_text("<img src=x")
    assert chat.page.locator("#turns img").count() == 0


def test_consent_shows_the_call(chat):
    found = card(chat, "delete_file")
    expect(found.locator(".tool-consent")).to_be_visible()
    expect(found).to_contain_text("/srv/report\\u202egnp.exe")
    expect(chat.page.locator("#stop")).to_be_visible()


def test_a_reason_that_is_typed_survives_a_redraw(chat, errors):
    reason = card(chat, "delete_file").locator("[name=reason]")
    reason.fill("Not that one")
    turns = chat.page.locator("#turns .turn").count()
    chat.page.evaluate("document.querySelector('.turn').dataset.drawn = 'old'")
    with chat.page.expect_event("websocket") as socket:
        chat.page.context.set_offline(True)
        chat.page.evaluate(
            "htmx.find('#conversation')['htmx-internal-data'].webSocket.close()"
        )
        chat.page.context.set_offline(False)
    assert socket.value
    chat.is_live()
    expect(chat.page.locator("#turns .turn")).to_have_count(turns)
    expect(reason).to_have_value("Not that one")
    errors.clear()  # of the lost connection


def test_an_answer_is_sent_with_the_digest_of_the_call(chat, made):
    # What the page sends is looked at and goes no further.
    chat.page.evaluate(
        """() => document.addEventListener("htmx:wsBeforeSend", (event) => {
            event.preventDefault();
            window.sent = event.detail.message;
        })"""
    )
    found = card(chat, "delete_file")
    found.locator("[name=reason]").fill("Keep it")
    found.get_by_role("button", name="Decline").click()
    text = chat.page.evaluate("window.sent")
    for part in ('"type":"consent"', f'"call":"{made[1]}"', '"allow":"false"'):
        assert part in text
    assert '"reason":"Keep it"' in text
    assert re.search(r'"digest":"[0-9a-f]{64}"', text)


def test_a_card_in_an_earlier_turn_follows_its_call(open_page, site, write_in):
    """Such a turn was loaded on the way up, and the socket does not know of it."""
    path = write_in(site, make_long)
    chat, other = open_page(site), open_page(site)
    for page in (chat, other):
        page.open(site.url + path)
        expect(page.turns).to_have_count(20)
        page.page.locator("#transcript").evaluate("(pane) => { pane.scrollTop = 0 }")
        expect(page.turns).to_have_count(22)
        card(page, "weigh").locator("> summary").click()
    card(chat, "weigh").get_by_role("button", name="Cancel").click()
    for page in (chat, other):
        # What came of it is a card of its own, at the end.
        expect(card(page, "weigh")).to_have_count(2)
        found = card(page, "weigh").first
        expect(found.locator(".tool-state")).to_have_text("Cancelled")
        expect(found.locator(".tool-body")).to_be_visible()


def test_cards_are_accessible(chat):
    open_all(chat)
    is_clean(chat.page)


def test_cards_stay_inside_a_phone(chat):
    chat.page.set_viewport_size(PHONE)
    open_all(chat)
    width = chat.page.evaluate("document.querySelector('#transcript').scrollWidth")
    assert width <= PHONE["width"]
