"""The page around the conversation: narrow screens, keys, the list, hostile text."""

import re

import pytest
from django.contrib.sessions.models import Session
from playwright.sync_api import expect

from tests.patience import wait_for

from .pages import ConversationPage

pytestmark = pytest.mark.browser

HOSTILE = """<img src=x onerror="document.title='broken'">
<script>document.title='broken'</script>
<div hx-get="/" hx-trigger="load" hx-target="body">div</div>
[click](javascript:document.title='broken') ![i](https://evil.example/x.png)"""


def test_hostile_text_stays_text_on_both_sides(chat):
    chat.say(HOSTILE)
    chat.page.reload()
    chat.is_live()
    expect(chat.message(1)).to_contain_text("onerror")
    for side in ("#turns", "#context"):
        for tag in ("img", "script", "[hx-get='/']", "a[href^='javascript']"):
            expect(chat.page.locator(f"{side} .body {tag}")).to_have_count(0)
    expect(chat.page).not_to_have_title("broken")


def test_a_phone_has_two_tabs(open_written):
    chat = open_written("Hi, I'm Lance!", width=390, height=844)
    expect(chat.message(1)).to_be_visible()
    expect(chat.right).to_be_hidden()
    chat.page.click("[data-tab-to=model]")
    expect(chat.right).to_be_visible()
    expect(chat.message(1)).to_be_hidden()
    expect(chat.page.locator("[data-tab-to=model]")).to_contain_text("(3)")
    chat.open_sheet("window").locator("a[href='#message-1']").click()
    expect(chat.message(1)).to_be_visible()


def test_a_touch_screen_breaks_lines_with_enter_and_a_tap_shows_the_actions(
    browser, site, sessions, errors, chat
):
    context = browser.new_context(
        viewport={"width": 390, "height": 844},
        has_touch=True,
        is_mobile=True,
        storage_state=sessions[site.url],
    )
    phone = ConversationPage(context.new_page(), site)
    phone.report_to(errors)
    phone.open(chat.url)
    phone.box.press_sequentially("one")
    phone.box.press("Enter")
    phone.box.press_sequentially("two")
    expect(phone.box).to_have_value("one\ntwo")
    phone.page.click("#send")
    expect(phone.in_state("done")).to_have_count(1)
    actions = phone.message(1).locator(".actions")
    expect(actions).to_have_css("opacity", "0")
    phone.message(1).locator(".body").tap()
    expect(actions).to_have_css("opacity", "1")
    expect(actions.locator(".mark")).to_have_text("In full")
    signs = phone.message(2).locator(".actions :is(.sign, .thumb)")
    assert signs.count() >= 5
    assert len({sign.bounding_box()["y"] for sign in signs.all()}) == 1
    phone.message(2).locator(".body").tap()
    expect(actions).to_have_css("opacity", "0")
    expect(phone.page.locator(".bar .badge")).to_be_hidden()
    phone.page.get_by_label("More", exact=True).click()
    expect(phone.page.locator(".bar .menu-items")).to_contain_text("Model: Demo model")
    context.close()


def test_the_actions_stand_under_their_message(open_written):
    chat = open_written("One", "Two")
    chat.page.locator("#text").hover()
    expect(chat.message(4).locator(".actions")).to_have_css("opacity", "1")
    expect(chat.message(2).locator(".actions")).to_have_css("opacity", "0")
    message = chat.message(2)
    message.hover()
    body, actions = (
        message.locator(part).bounding_box() for part in (".body", ".actions")
    )
    assert 0 <= actions["y"] - (body["y"] + body["height"]) <= 1
    # What lies over the next message is in the way of nothing until it shows.
    chat.page.locator("#text").hover()
    expect(message.locator(".actions")).to_have_css("pointer-events", "none")


def test_opened_parts_fit_into_a_phone(open_written):
    chat = open_written("One", "Two", width=390, height=844)
    page, find = chat.page, chat.page.locator("#find")
    for seq in (1, 2, 4):
        chat.message(seq).hover()
        chat.message(seq).locator(".message-menu > summary").click()
        is_inside(chat.message(seq).locator(".message-menu .menu-items"), 390)
        assert page.evaluate(WIDER) == []
        page.keyboard.press("Escape")
        # Neither pointed at nor in focus, its row is over the next message no more.
        chat.box.click()
    find.locator("> summary").click()
    is_inside(find.locator(".find-panel"), 390)


def is_inside(opened, width):
    expect(opened).to_be_visible()
    box = opened.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width


LONG = f"""{"x" * 300} مرحبا https://example.org/{"y" * 300}

| {" | ".join(f"column {n}" for n in range(12))} |
|{"-|" * 12}

```
{"z" * 300}
```"""
LARGE_LETTERS = {"fontSizes": {"standard": 32, "fixed": 26}}


def test_page_is_not_wider_than_the_screen(open_written):
    chat = open_written(LONG, width=390, height=844)
    page, wide = chat.page, []
    page.locator("[data-tab-to=model]").click()
    chat.open_sheet("window")
    for width, large in ((320, False), (390, True), (900, False), (1440, True)):
        page.set_viewport_size({"width": width, "height": 844})
        if large:
            session = page.context.new_cdp_session(page)
            session.send("Page.setFontSizes", LARGE_LETTERS)
        for tab in ("you", "model"):
            page.locator(f"[data-tab-to={tab}]").dispatch_event("click")
            wide += page.evaluate(WIDER)
    assert wide == []


def test_enlarged_four_times_there_is_room_to_read(open_written):
    chat = open_written("Hello", width=360, height=225)
    assert chat.page.locator("#transcript").bounding_box()["height"] > 110
    chat.message(2).scroll_into_view_if_needed()
    expect(chat.message(2)).to_be_in_viewport()
    chat.box.scroll_into_view_if_needed()
    expect(chat.box).to_be_in_viewport(ratio=1)
    expect(chat.page.locator("#transcript")).to_be_in_viewport()


WIDER = """["html", "#transcript", "#context-body"].filter((name) => {
    const element = document.querySelector(name);
    return element.scrollWidth > element.clientWidth;
}).map((name) => `${name} at ${innerWidth}`)"""


def test_the_list_is_a_drawer_on_a_phone(open_page, site):
    chat = open_page(site, width=390, height=844, is_home=False)
    chat.create()
    expect(chat.page.locator("#sidebar")).to_be_hidden()
    chat.page.click("#open-sidebar")
    expect(chat.page.locator("#sidebar")).to_be_visible()
    chat.page.keyboard.press("Escape")
    expect(chat.page.locator("#sidebar")).to_be_hidden()


def test_the_right_pane_is_a_drawer_on_a_tablet(open_page, site):
    chat = open_page(site, width=900, is_home=False)
    chat.create()
    expect(chat.right).to_be_hidden()
    chat.page.keyboard.press("Alt+m")
    expect(chat.right).to_be_visible()
    chat.page.keyboard.press("Escape")
    expect(chat.right).to_be_hidden()


def test_small_laptop_folds_the_list_before_the_right_pane(open_page, site):
    chat = open_page(site, width=1024, height=768, is_home=False)
    chat.create()
    expect(chat.page.locator("#sidebar")).to_be_hidden()
    assert chat.right.bounding_box()["width"] == 360
    expect(chat.box).to_be_in_viewport()
    chat.page.click("#toggle-pane")
    expect(chat.page.locator("#context-body")).to_be_hidden()
    expect(chat.right.locator(".strip")).to_be_visible()


# Tokens, height of the band and height of the sheet, of each sheet.
SHEETS = """(pane) => [...pane.querySelectorAll(".part > summary")].map((sheet) => [
    parseInt(sheet.querySelector(".tokens").textContent.slice(2), 10),
    sheet.querySelector(".weight").getBoundingClientRect().height,
    sheet.getBoundingClientRect().height,
])"""


def is_to_scale(pane):
    sheets = pane.evaluate(SHEETS)
    # A band that has just come has no height yet.
    scale = [tokens / max(band, 1) for tokens, band, _height in sheets]
    covered = all(height - max(band, 36) < 3 for _tokens, band, height in sheets)
    return len(sheets) == 2 and max(scale) / min(scale) < 1.1 and covered


def test_the_sheets_of_the_right_pane_are_to_scale_and_open_by_key(chat):
    chat.say("word " * 300)
    wait_for(lambda: is_to_scale(chat.right))
    window = chat.right.locator(".part-window")
    expect(window.locator(".seen-list")).to_be_hidden()
    window.locator("> summary").press("Enter")
    expect(window.locator(".seen-list")).to_be_visible()
    expect(window.locator(".glances")).to_be_hidden()


def test_free_part_of_the_bars_has_no_colour(open_written):
    chat = open_written("Hello")
    chat.open_about()
    bars = chat.right.locator(".meter")
    expect(bars.locator(".segment-free").first).to_have_css("fill", "none")
    expect(bars.locator(".segment-window").first).not_to_have_css("fill", "none")


def test_the_right_pane_stays_closed_when_it_was_closed(chat):
    pane, strip = chat.right.locator("#context-body"), chat.right.locator(".strip")
    chat.page.click("#toggle-pane")
    expect(pane).to_be_hidden()
    assert chat.right.bounding_box()["width"] == 40
    chat.page.reload()
    expect(pane).to_be_hidden()
    strip.click()
    expect(pane).to_be_visible()
    expect(strip).to_be_hidden()


def test_closed_pane_has_the_total_of_the_open_one(open_written):
    chat = open_written("Hi, I'm Lance!", "The budget is 3,200.")
    figures = re.compile(r"[\d,]+ of [\d,]+ tokens")
    meter = chat.right.locator(".reading > .meter").get_attribute("aria-label")
    chat.page.click("#toggle-pane")
    strip = chat.right.locator(".strip")
    assert figures.search(strip.get_attribute("aria-label"))[0] == meter
    expect(strip).to_contain_text(f"· {meter.partition(' ')[0]}")


def test_a_message_and_its_twin_light_up_together(open_written):
    chat = open_written("Hi, I'm Lance!")
    chat.message(1).hover()
    expect(chat.right.locator("[data-seq='1']")).to_have_class("counterpart")
    chat.open_sheet("window").locator("[data-seq='2']").hover()
    expect(chat.page.locator("#message-2")).to_contain_class("counterpart")
    expect(chat.page.locator("#message-1")).not_to_contain_class("counterpart")


def test_title_is_changed_in_place(chat):
    chat.page.click("#rename summary")
    chat.page.fill("#rename [name=title]", "苏黎世 & <b>")
    chat.page.press("#rename [name=title]", "Enter")
    expect(chat.page.locator("#conversation-title")).to_have_text("苏黎世 & <b>")
    expect(chat.page.locator("[aria-current] .title")).to_have_text("苏黎世 & <b>")
    expect(chat.page).to_have_title("苏黎世 & <b> · Windowpane")


def test_a_title_of_one_long_word_stays_in_its_line(chat):
    page, bar = chat.page, chat.page.locator("header.bar")
    height = bar.bounding_box()["height"]
    page.click("#rename summary")
    page.fill("#rename [name=title]", "W" * 200)
    page.press("#rename [name=title]", "Enter")
    expect(page.locator("#conversation-title")).to_have_text("W" * 200)
    assert bar.bounding_box()["height"] == height
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 844})
        expect(bar.locator(".menu > summary")).to_be_in_viewport(ratio=1)
        assert page.evaluate(WIDER) == []


def test_the_first_message_names_the_conversation(chat):
    chat.send("A question about trains")
    expect(chat.page.locator("#conversation-title")).to_have_text(
        "A question about trains"
    )


def test_list_is_searched_while_the_user_types(chat):
    chat.send("Searching for pelicans")
    chat.create()
    chat.page.locator("#search").press_sequentially("pelican")
    expect(chat.page.locator("#conversation-list .row > a")).to_have_count(1)
    rows = chat.page.locator("#conversation-list .row > a")
    chat.page.keyboard.press("ArrowDown")
    expect(rows).to_be_focused()
    chat.page.keyboard.press("ArrowUp")
    expect(chat.page.locator("#search")).to_be_focused()
    chat.page.fill("#search", "xylophone")
    expect(chat.page.locator("#conversation-list")).to_contain_text("No results for")
    chat.page.fill("#search", "pelican")
    expect(chat.page.locator("[data-query=pelican]")).to_be_visible()
    chat.page.keyboard.press("Enter")
    expect(chat.message(1)).to_contain_text("pelicans")


def test_conversation_is_deleted_after_a_confirmation(chat):
    address = chat.url
    chat.page.reload()
    chat.page.wait_for_load_state("networkidle")
    chat.page.get_by_label("More").click()
    chat.page.locator(".bar .menu-items").get_by_role("button", name="Delete").click()
    chat.page.wait_for_url(f"{chat.site.url}/")
    assert chat.page.request.get(address).status == 404


def test_page_is_not_restored_after_the_logout(open_written, sessions):
    chat = open_written("My secret is plum")
    sessions.clear()
    chat.page.click(".sidebar .user-menu summary")
    chat.page.get_by_role("button", name="Log out").click()
    chat.page.wait_for_url("**/accounts/login/**")
    chat.page.go_back()
    expect(chat.page.locator("body")).not_to_contain_text("plum")


def test_page_reports_the_end_of_the_session(chat, sessions, write_in):
    # A request that is still under way would lead to the login page.
    chat.page.wait_for_load_state("networkidle")
    sessions.clear()
    write_in(chat.site, Session.objects.all().delete)
    expect(chat.page.locator("#connection")).to_contain_text("Logged out")


def test_page_scrolls_with_a_reply_only_while_the_reader_is_at_its_end(open_written):
    text = "Text\n\nwith\n\nseveral\n\nlines"
    chat = open_written(*[text] * 7)
    chat.say(text)
    expect(chat.turns.last).to_be_in_viewport()
    scroller = chat.page.locator("#transcript")
    scroller.evaluate("(element) => { element.scrollTop = 0 }")
    expect(chat.page.locator("#jump")).to_be_visible()
    chat.page.locator("#jump").click()
    expect(chat.turns.last).to_be_in_viewport()
    expect(chat.page.locator("#jump")).to_be_hidden()


def test_policy_is_changed_and_invalid_text_is_kept(open_written):
    chat = open_written("Hi, I'm Lance!")
    chat.memory_settings()
    policy = chat.page.locator("#policy")
    policy.locator(".form-details > summary").click()
    policy.locator("[name=overrides]").fill('{"keep": ["tokens", -1]}')
    policy.get_by_role("button", name="Apply").click()
    expect(policy.get_by_role("alert")).to_contain_text("-1")
    expect(policy.locator("[name=overrides]")).to_have_value('{"keep": ["tokens", -1]}')
    policy.locator("[name=preset]").select_option("langgraph")
    policy.locator("[name=overrides]").fill("")
    policy.get_by_role("button", name="Apply").click()
    expect(chat.right).to_contain_text("LangGraph tutorial: summarises at 7 messages")


def test_settings_over_a_preset_are_counted_and_dropped_together(chat):
    chat.memory_settings()
    policy = chat.page.locator("#policy")
    policy.locator(".form-details > summary").click()
    policy.locator("[name=trigger_size]").fill("1900")
    policy.get_by_text("Do not search").click()
    policy.get_by_role("button", name="Apply").click()
    expect(chat.right).to_contain_text("summarises at 1,900 tokens")
    chat.memory_settings()
    expect(policy).to_contain_text("2 settings override the preset.")
    policy.locator("[name=preset]").select_option("langgraph")
    policy.get_by_role("button", name="Drop them").click()
    expect(policy).not_to_contain_text("override the preset")
    expect(policy.locator("[name=preset]")).to_have_value("langgraph")
    expect(policy.locator("[name=no_recall]")).not_to_be_checked()
    policy.get_by_role("button", name="Apply").click()
    expect(chat.right).to_contain_text("LangGraph tutorial: summarises at 7 messages")
