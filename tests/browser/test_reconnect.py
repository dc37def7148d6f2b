"""The page while the server refuses or is silent: no message is lost or sent twice.

The socket runs through a handler that can interfere.
"""

import json

import pytest
from playwright.sync_api import expect

from chatsite.live import fragments
from chatsite.protocol import events

pytestmark = pytest.mark.browser

WAIT = 2


class Line:
    """Between page and server; `meddle(page_side, sent)` returns True to swallow it."""

    def __init__(self, meddle):
        self.meddle = meddle
        self.sent = []
        self.opened = 0

    def __call__(self, page_side):
        self.opened += 1
        server_side = page_side.connect_to_server()

        def pass_on(text):
            sent = json.loads(text)
            if sent["type"] == "send":
                self.sent.append(sent["client_id"])
                if self.meddle(page_side, server_side, sent, len(self.sent)):
                    return
            server_side.send(text)

        page_side.on_message(pass_on)


@pytest.fixture
def meddled(chat):
    """meddled(meddle) -> Line: the chat's socket runs through it from now on."""

    def start(meddle):
        line = Line(meddle)
        chat.page.route_web_socket("**/ws/c/**", line)
        chat.page.reload()
        chat.is_live()
        return line

    return start


def refusal(code, sent):
    error = events.Error(code, "Not now.", sent["client_id"], float(WAIT))
    return fragments.render_error(error)


def test_a_refusal_that_passes_keeps_the_text_and_offers_it_again(chat, meddled):
    def refuse_first(page_side, server_side, sent, count):
        if count == 1:
            page_side.send(refusal("rate_limited", sent))
        return count == 1

    line = meddled(refuse_first)
    button = chat.page.locator("#send")
    chat.box.fill("Not so fast")
    chat.box.press("Enter")
    expect(chat.error).to_have_text("Not now.")
    expect(button).to_be_disabled()
    expect(button).to_contain_text("Send again (")
    expect(chat.box).to_have_value("Not so fast")
    expect(button).to_have_text("Send again")
    button.click()
    expect(chat.box).to_have_value("")
    expect(button).to_have_text("Send")
    expect(chat.error).to_be_empty()
    assert len(set(line.sent)) == 1
    assert [m["text"] for m in chat.transcript()][:1] == ["Not so fast"]


def test_an_absent_database_is_waited_for(chat, meddled):
    def refuse_twice(page_side, server_side, sent, count):
        if count <= 2:
            page_side.send(refusal("unavailable", sent))
        return count <= 2

    line = meddled(refuse_twice)
    chat.box.fill("Take your time")
    chat.box.press("Enter")
    expect(chat.page.locator("#pending")).to_be_visible()
    expect(chat.box).to_have_value("")
    expect(chat.in_state("done")).to_have_count(1)
    assert (len(line.sent), len(set(line.sent))) == (3, 1)


def test_a_cut_between_send_and_ack_sends_nothing_twice(chat, meddled):
    def cut(page_side, server_side, sent, count):
        if count > 1:
            return False
        server_side.on_message(lambda text: None)
        server_side.send(json.dumps(sent))
        page_side.close(code=1001)
        return True

    line = meddled(cut)
    chat.box.fill("Did you get this?")
    chat.box.press("Enter")
    expect(chat.box).to_have_value("")
    expect(chat.in_state("done")).to_have_count(1)
    chat.is_live()
    assert (len(line.sent), len(set(line.sent)), line.opened) == (2, 1, 2)
    asked = [m for m in chat.transcript() if m["role"] == "user"]
    assert len(asked) == 1


def test_refused_page_reports_too_many_pages_without_a_loop(chat):
    opened = []

    def refuse(page_side):
        opened.append(page_side)
        page_side.close(code=4429)

    chat.page.route_web_socket("**/ws/c/**", refuse)
    chat.page.reload()
    state = chat.page.locator("#connection")
    expect(state).to_have_attribute("data-state", "crowded")
    expect(state).to_contain_text("Too many pages open")
    chat.page.wait_for_timeout(3000)
    assert len(opened) == 1


def test_messages_wait_before_the_page_knows_that_it_is_offline(chat, meddled):
    """The server does not answer, and the socket stays open."""
    silent = ["yes"]
    meddled(lambda page, server, sent, n: bool(silent))
    chat.box.fill("First")
    chat.box.press("Enter")
    chat.box.press("Enter")
    expect(chat.page.locator("#pending")).to_be_visible()
    for text in ("Second", "Third"):
        chat.box.fill(text)
        chat.box.press("Enter")
        expect(chat.box).to_have_value("")
    waiting = chat.page.locator("#waiting .body")
    expect(waiting).to_have_text(["First", "Second", "Third"])
    silent.clear()
    chat.page.reload()
    expect(chat.in_state("done")).to_have_count(3)
    said = [row["text"] for row in chat.transcript() if row["role"] == "user"]
    assert said == ["First", "Second", "Third"]


def test_offline_is_said_and_mended(chat):
    lines = []

    def refuse(page_side):
        lines.append(page_side)
        if len(lines) == 1:
            page_side.close(code=1001)
        else:
            page_side.connect_to_server()

    chat.page.add_init_script(
        "Object.defineProperty(navigator, 'onLine', { get: () => !window.offline })"
    )
    chat.page.add_init_script("window.offline = true")
    chat.page.route_web_socket("**/ws/c/**", refuse)
    chat.page.reload()
    expect(chat.page.locator("#connection")).to_have_text("Offline")
    chat.page.evaluate("window.offline = false; dispatchEvent(new Event('online'))")
    chat.is_live()
    chat.say("Back again")


class TestWaiting:
    """Messages that were sent without a connection."""

    @pytest.fixture
    def away(self, chat):
        """A page whose sockets are closed, until `away.back()`."""
        gate = {"open": True}

        def pass_on(page_side):
            lines.append(page_side)
            if gate["open"]:
                page_side.connect_to_server()
            else:
                page_side.close(code=1001)

        def back():
            gate["open"] = True
            chat.page.evaluate("dispatchEvent(new Event('online'))")

        lines = []
        chat.page.route_web_socket("**/ws/c/**", pass_on)
        chat.page.reload()
        chat.is_live()
        chat.say("Here")
        gate["open"] = False
        lines[-1].close(code=1001)
        expect(chat.page.locator("#no-connection")).to_contain_text("Keep writing")
        chat.back = back
        return chat

    def texts(self, chat):
        return chat.page.locator("#waiting .body")

    def said(self, chat):
        return [row["text"] for row in chat.transcript() if row["role"] == "user"]

    def test_messages_wait_and_are_sent_in_their_order(self, away):
        for text in ("one", "two", "three"):
            away.send(text)
        expect(self.texts(away)).to_have_text(["one", "two", "three"])
        expect(away.page.locator("#pending")).to_be_hidden()
        away.page.reload()
        expect(self.texts(away)).to_have_text(["one", "two", "three"])
        away.box.fill("four, not sent")
        away.back()
        expect(away.in_state("done")).to_have_count(4)
        expect(away.page.locator("#waiting")).to_be_hidden()
        expect(away.box).to_have_value("four, not sent")
        assert self.said(away) == ["Here", "one", "two", "three"]

    def test_each_can_be_cancelled_and_is_a_text_again(self, away):
        for text in ("one", "two", "three"):
            away.send(text)
        away.box.fill("half")
        away.page.locator("#waiting button").nth(1).click()
        expect(self.texts(away)).to_have_text(["one", "three"])
        expect(away.box).to_have_value("two\nhalf")
        away.back()
        expect(away.in_state("done")).to_have_count(3)
        assert self.said(away) == ["Here", "one", "three"]
        expect(away.box).to_have_value("two\nhalf")

    def test_a_refusal_brings_all_of_them_back(self, away):
        away.page.evaluate("document.getElementById('composer').dataset.maxChars = 1e9")
        away.send("x" * 32_001)
        away.send("and this")
        away.back()
        expect(away.page.locator("#composer-error")).to_contain_text("32,000")
        expect(away.box).to_have_value("x" * 32_001 + "\nand this")
        expect(away.page.locator("#waiting")).to_be_hidden()
        assert self.said(away) == ["Here"]


COUNT_SOCKETS = """
window.sockets = [];
window.WebSocket = class extends WebSocket {
    constructor(...options) {
        super(...options);
        sockets.push(this);
    }
};
"""
# Cut off, then asked several times at once to come back.
ASK_OFTEN = """() => new Promise((done) => {
    sockets[0].addEventListener("close", () => {
        for (let count = 0; count < 3; count += 1) dispatchEvent(new Event("online"));
        sockets.at(-1).addEventListener("open", done);
    });
    sockets[0].close();
})"""


def test_socket_is_opened_once_for_many_requests(chat):
    chat.page.add_init_script(COUNT_SOCKETS)
    chat.page.reload()
    chat.is_live()
    chat.page.evaluate(ASK_OFTEN)
    chat.say("Once, please")
    closed, is_open = 3, 1
    states = chat.page.evaluate("sockets.map((each) => each.readyState)")
    assert states == [closed, is_open]


def test_two_tabs_keep_their_own_drafts(chat, open_page, site):
    other = open_page(site, context=chat.page.context, is_home=False)
    other.open(chat.url)
    chat.box.fill("from the first tab")
    other.box.fill("from the second tab")
    for page, text in ((chat, "from the first tab"), (other, "from the second tab")):
        page.page.reload()
        page.is_live()
        expect(page.box).to_have_value(text)


def test_the_draft_of_a_closed_tab_is_taken_up(chat, open_page, site):
    chat.box.fill("half a thought")
    living = open_page(site, context=chat.page.context, is_home=False)
    living.open(chat.url)
    expect(living.box).to_have_value("")
    url = chat.url
    chat.page.close()
    living.page.goto("about:blank")
    living.open(url)
    expect(living.box).to_have_value("half a thought")


def test_a_draft_left_behind_waits_while_something_else_is_typed(chat, open_page, site):
    chat.box.fill("half a thought")
    url, context = chat.url, chat.page.context
    later = open_page(site, context=context, is_home=False)
    chat.page.close()
    # It is typed before the script has come that would show the draft.
    scripts, address = [], "**/bundles/conversation*.js"
    later.page.route(address, lambda route: scripts.append(route), times=1)
    with later.page.expect_request(address):
        later.page.goto(url, wait_until="commit")
    later.box.fill("something else")
    scripts[0].continue_()
    later.is_live()
    later.page.wait_for_timeout(1_000)
    expect(later.box).to_have_value("something else")
    later.box.fill("")
    # Then it comes, and is kept as this tab's own.
    for _ in range(2):
        later.page.reload()
        expect(later.box).to_have_value("half a thought")
