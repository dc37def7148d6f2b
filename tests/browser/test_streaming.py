"""A reply that grows on the page: block by block, and in the end as if just loaded."""

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
MOTION = "no-preference"


# Slow enough that each state of it is seen, also on a busy machine.
REPLY = "mode=markdown:1400:0.04"
LAST_TURN = "() => document.querySelector('#turns > .turn:last-of-type').outerHTML"
# What makes the colours is loaded on first use.
WITHOUT_COLOURS = ".code code[class*='language-']:not(:has([class^='tok-']))"
# What stands there while it is written: blocks, a piece of code, what is selected.
REMEMBER = """() => {
    const body = document.querySelector(".live .body");
    window.kept = [...body.querySelectorAll(":scope > :not(.open)")];
    getSelection().selectAllChildren(kept[0]);
    window.moved = [];
    new MutationObserver((changes) => {
        for (const { removedNodes } of changes) moved.push(...removedNodes);
    }).observe(body, { childList: true });
}"""
KEPT = """() => kept.length && kept.every((node) => node.isConnected) &&
    !moved.some((node) => kept.includes(node)) && getSelection().toString()"""


# Some words of the block that is being written.
SELECT = """() => {
    const { firstChild } = document.querySelector(".live .open [id$=-tail]");
    const at = firstChild.data.search(/\\w+ \\w+/);
    getSelection().setBaseAndExtent(firstChild, at, firstChild, at + 6);
    window.words = getSelection().toString();
    return words;
}"""


def last_turn(chat):
    expect(chat.page.locator(WITHOUT_COLOURS)).to_have_count(0)
    return chat.page.evaluate(LAST_TURN)


def test_a_streamed_reply_stands_in_the_end_as_if_it_had_been_loaded(
    slow_chat, slow_provider
):
    with slow_provider.unfinished():
        slow_chat.send(REPLY)
        live = slow_chat.live_text()
        expect(live.locator("> h2")).to_have_text("Part 1: what the harbour needs")
        expect(live.locator(".open .code code")).to_contain_text("def leave")
        expect(live.locator("> .code .tok-keyword").first).to_have_text("def")
        slow_chat.page.evaluate(REMEMBER)
    expect(slow_chat.in_state("done")).to_have_count(1)
    assert "Part 1" in slow_chat.page.evaluate(KEPT)
    body = slow_chat.message(2).locator(".body")
    expect(body.locator("td").first).to_be_visible()
    streamed = last_turn(slow_chat)
    slow_chat.page.reload()
    slow_chat.is_live()
    assert streamed == last_turn(slow_chat)


def test_words_of_an_open_block_stay_selected_when_it_is_formatted(
    slow_chat, slow_provider
):
    with slow_provider.unfinished():
        slow_chat.send(REPLY)
        tail = slow_chat.live_text().locator(".open .plain")
        expect(tail).to_have_text(re.compile(r"\w{3,} \w{3,}"))
        words = slow_chat.page.evaluate(SELECT)
    expect(slow_chat.in_state("done")).to_have_count(1)
    assert words.strip()
    assert slow_chat.page.evaluate("getSelection().toString()") == words


def test_a_page_that_comes_in_the_middle_shows_the_same(
    slow_chat, slow_provider, open_page
):
    late = open_page(slow_chat.site, context=slow_chat.page.context)
    with slow_provider.unfinished():
        slow_chat.send(REPLY)
        expect(slow_chat.live_text().locator("> h2")).to_be_visible()
        late.open(slow_chat.url)
        expect(late.live_text().locator("> h2")).to_have_count(1)
    for chat in (slow_chat, late):
        expect(chat.in_state("done")).to_have_count(1)
    assert last_turn(slow_chat) == last_turn(late)
