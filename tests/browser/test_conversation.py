"""A conversation in a real browser: streaming, compaction, stopping, other tabs."""

import re

import pytest
from playwright.sync_api import expect

from tests.patience import PATIENCE

pytestmark = pytest.mark.browser
MOTION = "no-preference"


def test_reply_is_streamed_and_formatted_at_the_end(slow_chat, slow_provider):
    with slow_provider.unfinished():
        slow_chat.send("Tell me **more**")
        expect(slow_chat.live_text()).to_have_text(re.compile(r"\w+"))
        expect(slow_chat.in_state("running")).to_have_count(1)
        expect(slow_chat.status).to_have_text("Generating")
    expect(slow_chat.in_state("done")).to_have_count(1)
    expect(slow_chat.status).to_have_text("Reply complete")
    expect(slow_chat.message(1).locator(".body strong")).to_have_text("more")


def test_compaction_is_shown_on_its_messages(open_page, site):
    chat = open_page(site, is_home=False)
    chat.create("langgraph")
    chat.say("Hi, I'm Lance!")
    expect(chat.mark(1)).to_have_text("In full")
    for text in ("I like the 49ers.", "我住在苏黎世。", "My budget is 1,200 CHF."):
        chat.say(text)
    expect(chat.page.locator(".divider .label")).to_contain_text("→ v1")
    expect(chat.mark(1)).to_have_text("Summarised (v1)")
    expect(chat.right.locator(".summary-block")).to_contain_text("v1")
    expect(chat.right).to_contain_text("All 8 messages accounted for")
    expect(chat.status).to_contain_text("summarised (v1)")
    assert len(chat.transcript()) == 8


def test_opened_parts_stay_open_when_the_panes_are_rendered_again(open_written):
    chat = open_written("One")
    chat.right.locator(".part-system > summary").click()
    chat.say("Two")
    expect(chat.right.locator(".glances [data-first='4']")).to_be_visible()
    expect(chat.right.locator(".part-system")).to_have_attribute("open", "")


def test_request_of_a_reply_is_shown(open_written):
    chat = open_written("First", "Second")
    chat.act(2, "What the model saw")
    expect(chat.right).to_contain_text("As sent for reply #2")
    expect(chat.right).to_contain_text("Exactly what was sent")
    expect(chat.right).not_to_contain_text("Second")
    chat.say("Third")
    expect(chat.right).to_contain_text("As sent for reply #2")
    chat.page.select_option("#shown-reply", "")
    expect(chat.right).to_contain_text("Third")


def test_reply_is_stopped_and_retried(slow_chat, slow_provider):
    with slow_provider.unfinished():
        slow_chat.send("Something long")
        expect(slow_chat.live_text()).to_have_text(re.compile(r"\w+"))
        slow_chat.page.click("#stop")
        expect(slow_chat.in_state("stopped")).to_contain_text("Stopped")
        stopped = slow_chat.text_of(2)
        assert slow_chat.transcript()[1]["text"].split() == stopped.split()
        slow_chat.page.get_by_role("button", name="Retry").click()
        expect(slow_chat.live_text()).to_have_text(re.compile(r"\w+"))
        slow_chat.box.press("Escape")
        expect(slow_chat.in_state("stopped")).to_have_count(1)
        expect(slow_chat.page.locator(".pager")).to_contain_text("2 / 2")
    slow_chat.page.get_by_role("button", name="Retry").click()
    expect(slow_chat.in_state("done")).to_have_count(1)
    expect(slow_chat.page.locator(".pager")).to_contain_text("3 / 3")


def test_messages_queue_while_a_reply_is_written_and_can_be_cancelled(
    slow_chat, slow_provider
):
    with slow_provider.unfinished():
        slow_chat.send("One")
        slow_chat.send("Two")
        slow_chat.send("Three")
        expect(slow_chat.in_state("queued")).to_have_count(2)
        expect(slow_chat.in_state("queued").last).to_contain_text("2 before this one")
        slow_chat.in_state("queued").last.get_by_role("button", name="Cancel").click()
        expect(slow_chat.in_state("stopped")).to_have_count(1)
        expect(slow_chat.in_state("queued")).to_contain_text("1 before this one")
    expect(slow_chat.in_state("done")).to_have_count(2)


def test_reply_continues_after_a_reload(slow_chat, slow_provider):
    with slow_provider.unfinished():
        slow_chat.send("Something long")
        expect(slow_chat.live_text()).to_have_text(re.compile(r"\w+ \w+ \w+"))
        slow_chat.page.reload()
        expect(slow_chat.in_state("running")).to_have_count(1)
    expect(slow_chat.in_state("done")).to_have_count(1)
    shown = slow_chat.text_of(2)
    assert shown.split() == slow_chat.transcript()[1]["text"].split()


def test_second_tab_shows_the_same_and_can_stop(slow_chat, slow_provider, open_page):
    second = open_page(slow_chat.site, context=slow_chat.page.context, is_home=False)
    second.open(slow_chat.url)
    with slow_provider.unfinished():
        slow_chat.send("Something long")
        expect(second.live_text()).to_have_text(re.compile(r"\w+"))
        second.page.click("#stop")
        for tab in (slow_chat, second):
            expect(tab.in_state("stopped")).to_have_count(1)
    texts = [
        tab.message(2).locator(".body").inner_text() for tab in (slow_chat, second)
    ]
    assert texts[0] == texts[1] == slow_chat.transcript()[1]["text"].rstrip()


def test_failure_is_explained_and_offers_a_retry(slow_chat, slow_provider):
    slow_provider.script("401")
    slow_chat.send("Hello")
    expect(slow_chat.in_state("failed")).to_contain_text("refused this site's key")
    slow_chat.page.get_by_role("button", name="Retry").click()
    expect(slow_chat.in_state("done")).to_have_count(1)


def test_retry_is_offered_for_the_latest_failure_only(slow_chat, slow_provider):
    slow_provider.script("401", "401")
    for count, text in enumerate(("Hello", "Hello?"), 1):
        slow_chat.send(text)
        expect(slow_chat.in_state("failed")).to_have_count(count)
    retry = slow_chat.page.get_by_role("button", name="Retry")
    expect(retry.locator("visible=true")).to_have_count(1)
    expect(slow_chat.in_state("failed").last).to_contain_text("Retry")


def test_an_edit_supersedes_what_came_after(open_written):
    chat = open_written("I live in Zurich")
    chat.replace(1)
    expect(chat.box).to_have_value("I live in Zurich")
    expect(chat.page.locator("#editing")).to_contain_text("#1")
    chat.send("I live in Basel")
    expect(chat.page.locator("details.superseded")).to_have_count(1)
    expect(chat.message(3)).to_contain_text("I live in Basel")
    expect(chat.right).to_contain_text("2 replaced")


def test_conversation_survives_a_killed_server(open_page, make_site, errors):
    # A site that is slow lets go of a turn whose lease it has not renewed in time.
    quick = {"TURN_LEASE_SECONDS": str(2 * PATIENCE), "TURN_SWEEP_SECONDS": "0.5"}
    with make_site(DEMO_TOKENS_PER_SECOND="10", **quick) as own:
        chat = open_page(own, is_home=False)
        chat.create()
        chat.send("Hi, I'm Lance!")
        expect(chat.live_text()).to_have_text(re.compile(r"\w+ \w+"))
        own.kill()
        expect(chat.page.locator("#connection")).to_have_text("Reconnecting…")
        chat.box.fill("Still there?")
        chat.box.press("Enter")
        waiting = chat.page.locator("#waiting")
        expect(waiting).to_contain_text("Still there?")
        expect(chat.box).to_have_value("")
        chat.send("And you?")
        chat.box.fill("And more")
        own.start()
        expect(waiting).to_be_hidden(timeout=30_000 * PATIENCE)
        expect(chat.box).to_have_value("And more")
        expect(chat.in_state("done")).to_have_count(3, timeout=30_000 * PATIENCE)
        said = [row["text"] for row in chat.transcript() if row["role"] == "user"]
        assert said == ["Hi, I'm Lance!", "Still there?", "And you?"]
        chat.page.goto("about:blank")
    # The browser reports every attempt to connect, or to load, while no server listens.
    reports = ("WebSocket", "ERR_CONNECTION", "[object Event]", "htmx:")
    errors[:] = [text for text in errors if not any(part in text for part in reports)]
