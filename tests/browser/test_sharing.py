"""A link from its owner's dialog to the visitor who opens it: both panes, the replay.

The pages are accessible.
"""

import re

import pytest
from playwright.sync_api import expect

from .conftest import open_tab
from .test_access import WIDE, findings, is_clean
from .test_memory import notice, open_menu

pytestmark = pytest.mark.browser


@pytest.fixture
def owner(open_written):
    """A conversation of three replies."""
    texts = ("My budget is 3,200 euros.", "I fly in April.", "What is my budget?")
    return open_written(*texts)


@pytest.fixture
def stranger(take_context, errors, site):
    """A browser without a session; its sockets are counted."""
    page = open_tab(take_context(**WIDE), site)
    sockets = []
    page.on("websocket", lambda socket: sockets.append(socket.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on(
        "console",
        lambda message: message.type == "error" and errors.append(message.text),
    )
    yield page
    assert sockets == []


def share(owner, *, with_view, with_copy=False):
    """The address of a link that is made in the dialog."""
    page = owner.page
    page.locator("header.bar .menu > summary").click()
    page.get_by_role("button", name="Share…").click()
    if with_view:
        page.get_by_label("Also show what the model saw").check()
    if with_copy:
        page.get_by_label("Readers may try it on a copy").check()
    page.get_by_role("button", name="Create link").click()
    return page.locator("#dialog .share-links .made pre").inner_text()


def test_a_stranger_reads_both_panes_and_the_replay(owner, stranger):
    stranger.goto(share(owner, with_view=True))
    owner.page.keyboard.press("Escape")
    right = stranger.locator("#context")
    expect(right).to_contain_text("As sent for reply #6")
    expect(right).to_contain_text("Exactly what was sent")
    # No place of a message is known before a moment is replayed: no rail says one.
    expect(stranger.locator("#replayed .message")).to_have_count(6)
    stranger.get_by_role("button", name="Back to the conversation").click()
    expect(stranger.locator("#turns .message")).to_have_count(6)
    assert (
        stranger.evaluate(
            "getComputedStyle(document.querySelector('#turns'), '::before').content"
        )
        == "none"
    )
    expect(stranger.locator(".what-is-this a")).to_have_attribute("href", "/")
    stranger.locator("#message-2").hover()
    stranger.locator("#message-2").get_by_text("What the model saw").click()
    expect(right).to_contain_text("As sent for reply #2")
    stranger.locator("#message-1").hover()
    expect(right.locator(".glances .counterpart")).to_contain_text("#1")
    expect(right.locator(".glances .counterpart")).to_be_visible()
    stranger.click("[data-replay]")
    expect(stranger.locator("#replayed .message")).to_have_count(6)
    expect(stranger.locator("#moment")).to_be_focused()
    stranger.locator("#moment").press("Home")
    expect(stranger.locator("#replayed .message")).to_have_count(2)
    expect(right).to_contain_text("As sent for reply #2")
    stranger.keyboard.press("Escape")
    expect(stranger.locator("#turns .message").first).to_be_visible()
    expect(right).to_contain_text("As sent for reply #6")
    right.locator(".about > summary").click()
    right.get_by_text("Raw JSON, as sent").click()
    expect(right.locator(".raw.whole pre")).to_contain_text('"role": "system"')


def test_shared_page_opens_at_the_last_reply_that_can_be_shown(owner, stranger):
    open_menu(owner, 5, "Hide from the model")
    expect(notice(owner)).to_contain_text("no longer sees message #5")
    stranger.goto(share(owner, with_view=True))
    replayed = stranger.locator("#replayed .message")
    expect(replayed).to_have_count(4)
    # The rail has the place of each message from the start.
    places = replayed.evaluate_all("all => all.map((each) => each.dataset.place)")
    assert places == ["window", "window", "sending", "reply"]
    expect(stranger.locator("#context")).to_contain_text("As sent for reply #4")
    expect(stranger.locator("#context")).to_contain_text("Exactly what was sent")
    # So has one sentence that says what both sides are.
    expect(stranger.locator(".what-is-this")).to_be_in_viewport()


def test_a_long_text_is_folded_there_too(owner, stranger):
    owner.say("\n\n".join(f"Line {number}" for number in range(40)))
    stranger.goto(share(owner, with_view=False))
    message = stranger.locator("#message-7")
    folded = message.bounding_box()["height"]
    assert folded < 450
    message.get_by_role("button", name="Show all").click()
    expect(message).to_be_focused()
    assert message.bounding_box()["height"] > 2 * folded
    expect(stranger.get_by_role("button", name="Show all")).to_have_count(0)


def test_shared_page_stays_as_it_was_until_it_is_revoked(owner, stranger, errors):
    address = share(owner, with_view=False)
    owner.page.keyboard.press("Escape")
    owner.say("And something new?")
    stranger.goto(address)
    expect(stranger.locator("#turns .message")).to_have_count(6)
    expect(stranger.locator("#context")).to_have_count(0)
    owner.page.goto(f"{owner.site.url}/account/#shares")
    expect(owner.page.locator("#shares")).to_contain_text("opened 1 time")
    owner.page.locator("#shares").get_by_role("button", name="Revoke").first.click()
    stranger.reload()
    expect(stranger.get_by_role("heading", name="This link")).to_be_visible()
    errors.clear()  # of the 404


def test_shared_pages_and_the_dialog_shut_no_one_out(owner, stranger):
    stranger.goto(share(owner, with_view=True))
    is_clean(owner.page, "#dialog")
    is_clean(stranger)
    stranger.click("[data-replay]")
    expect(stranger.locator("#replayed .message").first).to_be_visible()
    assert findings(stranger, "#replay, #replayed") == []
    owner.page.locator("#dialog").get_by_role("button", name="Close").click()
    stranger.goto(share(owner, with_view=False))
    is_clean(stranger)


def test_shared_views_are_tabs_on_a_phone(owner, stranger):
    address = share(owner, with_view=True)
    stranger.set_viewport_size({"width": 390, "height": 844})
    stranger.goto(address)
    expect(stranger.locator("#context")).to_be_hidden()
    stranger.get_by_role("tab", name=re.compile("The model saw")).click()
    expect(stranger.locator("#context")).to_be_visible()
    expect(stranger.locator("#tab-count")).to_have_text(re.compile(r"\(\d+\)"))
    too_wide = "() => document.documentElement.scrollWidth > innerWidth"
    assert not stranger.evaluate(too_wide)


def test_a_copied_address_opens_the_moment_that_it_was_copied_at(owner, stranger):
    stranger.goto(share(owner, with_view=True))
    slider = stranger.locator("#moment")
    slider.press("Home")
    expect(stranger.locator("#replayed .message")).to_have_count(2)
    stranger.goto(stranger.url)
    expect(stranger.locator("#replayed .message")).to_have_count(2)
    expect(slider).to_have_value("0")
    expect(stranger.locator("#context")).to_contain_text("As sent for reply #2")


def test_a_replay_plays_to_its_end(owner, stranger):
    stranger.goto(share(owner, with_view=True))
    stranger.get_by_role("button", name="4×").click()
    stranger.get_by_role("button", name="Play", exact=True).click()
    for messages in (2, 4, 6):
        expect(stranger.locator("#replayed .message")).to_have_count(messages)
    expect(stranger.get_by_role("button", name="Play", exact=True)).to_be_visible()
    # From the middle it goes on there, and waits where it is paused.
    stranger.locator("#moment").press("ArrowLeft")
    expect(stranger.locator("#replayed .message")).to_have_count(4)
    stranger.get_by_role("button", name="Play", exact=True).click()
    stranger.get_by_role("button", name="Pause").click()
    stranger.wait_for_timeout(700)
    expect(stranger.locator("#replayed .message")).to_have_count(4)
