"""The right pane comes with the page, and is loaded again only when it has changed."""

import pytest
from playwright.sync_api import expect

from chatsite.turns import variations
from memory.models import Conversation

pytestmark = pytest.mark.browser

# Longer than a sync and the wait of the right pane for further changes.
SETTLED_MS = 1_500


def record_loads(chat):
    """Return a list to which each request for the right pane is added."""
    loads = []

    def note(request):
        if "/context/?" in request.url:
            loads.append(request.url)

    chat.page.on("request", note)
    return loads


def settle(chat):
    """Wait until the first sync has come, and what it makes the page ask for."""
    chat.is_live()
    chat.page.wait_for_timeout(SETTLED_MS)
    chat.page.wait_for_load_state("networkidle")


def switch_off_first_message(address):
    uuid = address.rstrip("/").rpartition("/")[2]
    variations.switch_off(Conversation.objects.get(uuid=uuid), ("message-1",))


def test_opening_a_page_does_not_load_the_right_pane_again(open_written):
    chat = open_written("One", "Two")
    settle(chat)
    loads = record_loads(chat)
    chat.page.reload()
    settle(chat)
    assert loads == []
    expect(chat.right).to_contain_text("All 4 messages accounted for")


def test_right_pane_that_changed_before_the_socket_opened_is_loaded(
    open_written, write_in
):
    chat = open_written("One", "Two")
    settle(chat)

    def change_first(page_side):
        write_in(chat.site, switch_off_first_message, chat.url)
        page_side.connect_to_server()

    chat.page.route_web_socket("**/ws/c/**", change_first)
    loads = record_loads(chat)
    chat.page.reload()
    settle(chat)
    expect(chat.right.locator("#desk")).to_contain_text("1 change")
    assert len(loads) == 1


def test_reconnected_page_loads_its_right_pane(open_written):
    chat, sockets = open_written("One", "Two"), []
    settle(chat)

    def pass_on(page_side):
        sockets.append(page_side)
        page_side.connect_to_server()

    chat.page.route_web_socket("**/ws/c/**", pass_on)
    loads = record_loads(chat)
    chat.page.reload()
    settle(chat)
    assert loads == []
    with chat.page.expect_response("**/context/?*"):
        sockets[0].close(code=1012)
    settle(chat)
    assert (len(sockets), len(loads)) == (2, 1)


def test_message_that_is_shown_as_a_draft_is_not_loaded_again(open_written):
    chat = open_written("One", "Two")
    settle(chat)
    chat.box.fill("Three")
    expect(chat.right.locator(".part-newest")).to_contain_text("Three")
    loads = record_loads(chat)
    chat.box.press("Enter")
    expect(chat.right).to_contain_text("All 6 messages accounted for")
    settle(chat)
    assert len(loads) == 1
    chat.right.locator("#shown-reply").select_option("6")
    expect(chat.right).to_contain_text("Exactly what was sent")


def test_message_with_other_words_than_the_shown_draft_is_loaded(open_written):
    chat = open_written("One")
    settle(chat)
    chat.box.fill("Two")
    expect(chat.right.locator(".part-newest")).to_contain_text("Two")
    loads = record_loads(chat)
    chat.box.fill("Three")
    chat.box.press("Enter")
    expect(chat.right).to_contain_text("All 4 messages accounted for")
    settle(chat)
    assert 1 <= len(loads) <= 2
