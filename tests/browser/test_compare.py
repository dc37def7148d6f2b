"""Two requests beside each other, from a reply's menu: in both languages and themes,
wide and on a phone.
"""

import re

import pytest
from playwright.sync_api import expect

from .test_access import is_clean
from .test_memory import compact_up_to, write_long_talk

pytestmark = pytest.mark.browser

# Of the later request: what its parts have, and the sum, but not their difference.
COUNTED = "table.costs tbody tr:not(:nth-last-child(2)) td:nth-child(3)"
TAG = re.compile("</?(summary|history|message)|&gt;")


def test_the_menu_leads_to_what_changed_and_what_it_cost(chat, errors):
    chat.say("I'm Lance.")
    chat.say("The budget is 3,200.")
    chat.act(4, "⋯")
    chat.message(4).get_by_text("More…").click()
    chat.message(4).get_by_role("link", name="Compare with the reply before").click()
    page = chat.page
    expect(page.get_by_role("heading", name="What it cost")).to_be_visible()
    expect(page.locator(".causes li")).to_have_count(1)
    expect(page.locator(".cache-end")).to_have_count(1)
    expect(page.locator(".block-new").first).to_contain_text("Lance")
    is_clean(page)
    page.fill("#compare-with", "99")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("reply #99")
    errors.clear()  # of the 404
    page.fill("#compare-with", "4")
    page.keyboard.press("Enter")
    expect(page.locator(".block-equal")).to_contain_text("4 messages, the same")
    page.get_by_role("link", name="Costs of the turns").click()
    expect(page.locator(".strip rect.part-newest")).to_have_count(2)
    is_clean(page)
    page.get_by_role("link", name="#4").click()
    page.fill("#compare-with", "4")
    page.keyboard.press("Enter")
    page.locator(".user-menu > summary").click()
    page.locator(".user-menu").get_by_role("button", name="简体中文").click()
    expect(page.locator(".block-equal")).to_contain_text("4 条消息相同")


def test_summarised_messages_are_one_folded_block(open_written):
    chat = open_written("I'm Lance.", "I like tea.", "Hello again.")
    compact_up_to(chat, 2, "**Goal.** They met -> they have tea.")
    chat.say("And now?")
    chat.page.goto(f"{chat.url}compare/?reply=8&with=6")
    block = chat.page.locator(".block-summarised")
    expect(block).to_contain_text("now in v1")
    expect(chat.page.locator(".block-gone")).to_have_count(0)
    # The summary is read as people read one, without the tag around it.
    summary = chat.page.locator(".block-new .words")
    expect(summary).to_contain_text("v1 · #1–#2")
    expect(summary.locator("strong")).to_have_text("Goal.")
    expect(chat.page.locator(".blocks")).not_to_contain_text(TAG)
    is_clean(chat.page)


def read_numbers(texts):
    """The figures that are not 0, in order of size: of "≈ 299 of 4,000" the first."""
    found = [re.search(r"\d[\d,]*", text)[0].replace(",", "") for text in texts]
    return sorted(int(digits) for digits in found if digits.strip("0"))


def test_request_has_the_same_figures_on_every_page(open_page, site, write_in):
    chat = open_page(site, is_home=False)
    chat.open(site.url + write_in(site, write_long_talk))
    page, meter = chat.page, chat.right.locator(".reading > .meter")
    sheets = chat.right.locator(".part:not(.part-free) > summary .tokens")
    compact_up_to(chat, 6, "They look for a hotel.")
    for text in ("Where is the cheapest one?", "And the nearest?"):
        chat.say(text)
    seq = chat.transcript()[-1]["seq"]
    for reply in ("", str(seq)):
        page.select_option("#shown-reply", reply)
        shown = chat.json("context.json", **({"reply": reply} if reply else {}))
        estimated = shown["tokens"]["estimated"]
        # The parts are estimates; the provider has counted them all together.
        total = shown["tokens"]["reported"] or estimated
        sizes = sorted(part["tokens"] for part in shown["parts"] if part["tokens"])
        assert sum(sizes) == estimated
        expect(meter).to_have_attribute("aria-label", f"{estimated:,} of 32,000 tokens")
        expect(chat.right.locator(".tokens-read")).to_contain_text(f" {total:,} tokens")
        assert read_numbers(sheets.all_inner_texts()) == sizes
        if not reply:
            page.click("#toggle-pane")
            expect(page.locator(".strip-name")).to_contain_text(f"· {total:,}")
            page.click("[data-open-pane]")
    address = chat.url
    page.goto(f"{address}costs/")
    row = page.locator("table.costs tr", has=page.get_by_role("link", name=f"#{seq}"))
    cells = row.locator("td").all_inner_texts()
    assert cells[0] == f"{total:,}"
    assert read_numbers(cells[2:-1]) == sizes
    page.goto(f"{address}compare/?reply={seq}&with={seq - 2}")
    cells = page.locator(COUNTED).all_inner_texts()
    assert cells[-1] == f"{total:,}"
    assert read_numbers(cells[:-1]) == sizes
