"""Modules that pages load on first use: when they do, how often, and what happens when
they can't.
"""

import re

import pytest
from playwright.sync_api import expect

from .test_attachments import DROP, NOTES, PASTE, attach, attached
from .test_reading import CODE

pytestmark = pytest.mark.browser
MODULES = re.compile(r"/(colours|attachment-cards|replay|open-dialog)\b[^/]*\.js")
COLOURS = re.compile(r"/js/colours\b")
MENU = re.compile(r"/messages/\d+/menu/")
CARDS = re.compile(r"/attachment-cards\b[^/]*\.js")
NOT_LOADED = "Part of the page did not load. Try again when there is a connection"
LOG = "A line of a log.\n" * 400


@pytest.fixture
def loaded(chat):
    """Return the modules that the page has loaded, one entry for each request."""
    found = []
    chat.page.on("request", lambda request: found.extend(MODULES.findall(request.url)))
    return found


@pytest.fixture
def cut_off(chat, errors):
    """cut_off(module): it can't be loaded until restore() is called."""

    class CutOff:
        def __call__(self, module):
            self.module = module
            chat.page.route(module, lambda route: route.abort())

        def restore(self):
            chat.page.unroute(self.module)

    yield CutOff()
    # The browser itself notes what it could not load.
    assert {error.split(":")[0] for error in errors} == {"Failed to load resource"}
    errors.clear()


@pytest.fixture
def hold(chat):
    """hold(module) -> release(): the module is not loaded before."""

    def hold(module):
        held = []
        chat.page.route(module, lambda route: held.append(route))

        def release():
            while not held:
                chat.page.wait_for_timeout(20)
            held[0].continue_()

        return release

    return hold


def test_a_page_without_any_use_of_them_loads_none(chat, loaded):
    chat.page.reload()
    chat.is_live()
    chat.say("Hello")
    chat.page.evaluate(PASTE, ["short"])
    chat.page.goto(f"{chat.site.url}/")
    chat.page.wait_for_load_state("networkidle")
    assert loaded == []


class TestMenuOfAMessage:
    def test_menu_is_loaded_once(self, chat):
        sent = []
        chat.page.on("request", lambda each: sent.extend(MENU.findall(each.url)))
        chat.say("Hello")
        for seq in (1, 2, 2):
            chat.act(seq, "⋯")
            expect(chat.message(seq).locator(".menu-items")).to_be_visible()
            chat.page.keyboard.press("Escape")
            expect(chat.message(seq).locator(".menu-items")).to_be_hidden()
        assert sent == ["/messages/1/menu/", "/messages/2/menu/"]

    def test_menu_without_connection_opens_later(self, chat, errors):
        chat.say("Hello")
        chat.page.route(MENU, lambda route: route.abort())
        chat.act(2, "⋯")
        expect(chat.page.locator("#notice")).to_contain_text(NOT_LOADED)
        expect(chat.message(2).locator(".message-menu[open]")).to_have_count(0)
        errors.clear()
        chat.page.unroute(MENU)
        chat.act(2, "⋯")
        expect(chat.message(2).get_by_role("button", name="Pin")).to_be_visible()


class TestColours:
    def test_the_first_code_loads_them_once(self, chat, loaded):
        chat.say(CODE)
        expect(chat.message(1).locator(".tok-keyword").first).to_have_text("def")
        chat.say(CODE)
        expect(chat.message(3).locator(".tok-keyword").first).to_have_text("def")
        assert loaded == ["colours"]

    def test_code_that_is_there_before_them_gets_them(self, chat, hold):
        release = hold(COLOURS)
        chat.say(CODE)
        expect(chat.message(1).locator(".code-head")).to_contain_text("Copy")
        expect(chat.page.locator(".tok-keyword")).to_have_count(0)
        release()
        expect(chat.message(1).locator(".tok-keyword").first).to_have_text("def")

    def test_a_turn_that_is_drawn_again_keeps_its_code(self, chat):
        chat.say(CODE)
        expect(chat.message(1).locator(".tok-keyword").first).to_have_text("def")
        chat.page.evaluate(
            """window.drawn = document.querySelector("#message-1 .code");
            drawn.closest(".turn").dataset.drawn = "outdated";
            document.dispatchEvent(new Event("connection:doubt"))"""
        )
        expect(chat.turns.first).not_to_have_attribute("data-drawn", "outdated")
        assert chat.page.evaluate("drawn.isConnected")

    def test_code_is_readable_and_copied_without_colours(self, chat, cut_off):
        cut_off(COLOURS)
        chat.say(CODE)
        code = chat.message(1).locator(".code")
        expect(code.get_by_role("button", name="Copy")).to_be_visible()
        expect(code.locator("pre")).to_contain_text("def hello(name):  # greet")
        expect(code.locator("span[class^=tok]")).to_have_count(0)
        # The next code tries again, for all.
        cut_off.restore()
        chat.say(CODE)
        expect(chat.message(3).locator(".tok-keyword").first).to_have_text("def")
        expect(code.locator(".tok-keyword").first).to_have_text("def")


class TestAttachments:
    def test_the_first_file_loads_the_cards_once(self, chat, loaded):
        attach(chat.page, NOTES)
        expect(attached(chat.page)).to_contain_text("tokens")
        chat.page.evaluate(PASTE, [LOG])
        chat.page.evaluate(DROP, ["prices.csv", "lamp,12\n"])
        expect(attached(chat.page).get_by_text("tokens")).to_have_count(3)
        assert loaded == ["attachment-cards"]

    def test_message_waits_until_the_card_script_is_loaded(self, chat, hold):
        release = hold(CARDS)
        attach(chat.page, NOTES)
        chat.box.fill("What is the gate code?")
        chat.box.press("Enter")
        expect(chat.error).to_contain_text("A file is not attached yet")
        release()
        expect(attached(chat.page)).to_contain_text("tokens")
        chat.say("What is the gate code?")
        assert len(chat.transcript()[0]["attachments"]) == 1

    def test_a_file_without_them_is_named_and_blocks_nothing(self, chat, cut_off):
        cut_off(CARDS)
        attach(chat.page, NOTES, {**NOTES, "name": "b.md"})
        expect(chat.error).to_contain_text("notes.md, b.md: Not attached")
        expect(chat.error).to_contain_text("Try again when there is a connection")
        chat.say("Without files")
        cut_off.restore()
        attach(chat.page, NOTES)
        expect(attached(chat.page)).to_contain_text("tokens")
        expect(attached(chat.page)).to_have_count(1)
        expect(chat.error).to_be_empty()

    def test_a_paste_without_them_is_text_behind_what_was_typed(self, chat, cut_off):
        cut_off(CARDS)
        chat.box.fill("See: ")
        chat.page.evaluate(PASTE, [LOG])
        expect(chat.box).to_have_value(f"See: {LOG}")
        chat.box.press("X")
        expect(chat.box).to_have_value(f"See: {LOG}X")
        expect(chat.error).to_be_empty()

    def test_a_draft_keeps_its_files_without_them(self, chat, cut_off):
        attach(chat.page, NOTES)
        expect(attached(chat.page)).to_contain_text("tokens")
        cut_off(CARDS)
        chat.page.reload()
        expect(chat.error).to_contain_text("notes.md: Not attached")
        # Nothing goes out that can't be seen.
        chat.box.fill("What is the gate code?")
        chat.box.press("Enter")
        expect(chat.error).to_contain_text("A file is not attached yet")
        cut_off.restore()
        chat.page.reload()
        expect(attached(chat.page)).to_contain_text("notes.md")
        chat.is_live()
        chat.box.press("Enter")
        expect(chat.message(1).locator(".attachment")).to_contain_text("notes.md")

    def test_home_page_reports_a_card_script_that_cannot_be_loaded(self, chat, cut_off):
        chat.page.goto(f"{chat.site.url}/")
        cut_off(CARDS)
        attach(chat.page, NOTES)
        expect(chat.error).to_contain_text("notes.md: Not attached")
        chat.page.evaluate(PASTE, [LOG])
        expect(chat.box).to_have_value(LOG)
        chat.box.press("Enter")
        expect(chat.message(1)).to_contain_text("A line of a log.")


class TestReplayAndDialog:
    @pytest.fixture
    def chat(self, open_written):
        return open_written("Hello")

    def test_the_first_use_loads_each_once(self, chat, loaded):
        for _ in range(2):
            chat.page.click("[data-replay]")
            expect(chat.page.locator("#replayed .message")).to_have_count(2)
            chat.page.keyboard.press("Escape")
            expect(chat.page.locator("#replay")).to_be_hidden()
            chat.memory_settings()
            chat.page.keyboard.press("Escape")
            expect(chat.page.locator("#dialog")).to_be_hidden()
        assert loaded == ["replay", "open-dialog"]

    def test_replay_reports_a_script_that_cannot_be_loaded(self, chat, cut_off):
        cut_off(re.compile(r"/js/replay\b"))
        chat.page.click("[data-replay]")
        expect(chat.page.locator("#notice")).to_contain_text(NOT_LOADED)
        cut_off.restore()
        chat.page.click("[data-replay]")
        expect(chat.page.locator("#replayed .message")).to_have_count(2)

    def test_dialog_reports_a_script_that_cannot_be_loaded(self, chat, cut_off):
        cut_off(re.compile(r"/js/open-dialog\b"))
        tools = chat.page.get_by_role("button", name="Tools…")
        chat.page.locator("header.bar .menu > summary").click()
        tools.click()
        expect(chat.page.locator("#notice")).to_contain_text(NOT_LOADED)
        cut_off.restore()
        tools.click()
        expect(chat.page.locator("#dialog")).to_be_visible()
