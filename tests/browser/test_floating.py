"""Floating parts cover no text: bars of actions, notices, the guide, closed menus."""

import pytest
from playwright.sync_api import expect

from tests.patience import PATIENCE

from .conftest import open_tab
from .pages import PASSWORD
from .test_memory import compact_up_to, open_menu
from .test_rail import PLACE
from .test_sharing import share

pytestmark = pytest.mark.browser

# Texts on the screen, with what lies over them. A text that is out of sight has its own
# element nowhere below the point.
COVERED = """() => {
    const found = new Map();
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const { currentNode: text } = texts, owner = text.parentElement;
        if (!text.data.trim() || owner.closest("template, option, svg")) continue;
        const range = new Range();
        range.selectNodeContents(text);
        for (const { left, right, top, bottom } of range.getClientRects()) {
            for (const x of [left + 2, (left + right) / 2, right - 2]) {
                const stack = document.elementsFromPoint(x, (top + bottom) / 2);
                if (!stack.includes(owner)) continue;
                const over = stack[0];
                if (owner.contains(over) || over.contains(owner)) continue;
                found.set(text.data.trim(), over.outerHTML.slice(0, 120));
            }
        }
    }
    return Object.fromEntries(found);
}"""
# What floats (fixed, sticky, absolute) and can be seen, with the texts below it that
# are no part of it. Where two boxes meet, the page says which is on top. Menus and
# dialogs that the user has opened may lie over the page, but over nothing else.
FLOATING = """() => {
    const OPENED = "dialog[open], details[open] > :not(summary), [popover]";
    const paints = (element) => {
        const { backgroundColor, borderTopWidth, opacity } = getComputedStyle(element);
        const isClear = / 0[)]$|^transparent$/.test(backgroundColor);
        const hasText = element.innerText?.trim() || element.querySelector("svg");
        return opacity > 0.1 && (!isClear || hasText || parseFloat(borderTopWidth) > 0);
    };
    const floats = [...document.body.querySelectorAll("*")].filter((element) =>
        /fixed|sticky|absolute/.test(getComputedStyle(element).position)
        && element.checkVisibility({ opacityProperty: true, visibilityProperty: true })
        && !element.closest("svg, template") && !element.closest(OPENED)
        && getComputedStyle(element).clipPath === "none" && paints(element));
    const boxes = floats.map((element) => [element, element.getBoundingClientRect()])
        .filter(([, { width, height }]) => width > 1 && height > 1);
    const all = new CSSStyleSheet();
    all.replaceSync("* { pointer-events: auto !important; }");
    document.adoptedStyleSheets.push(all);
    const found = new Map();
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const { currentNode: text } = texts, owner = text.parentElement;
        if (!text.data.trim() || owner.closest("template, option, svg")) continue;
        if (owner.closest(OPENED)) continue;
        // Bars of two messages share a gap; one of them is shown.
        if (!owner.checkVisibility({ opacityProperty: true })) continue;
        const range = new Range();
        range.selectNodeContents(text);
        for (const line of range.getClientRects()) {
            for (const [element, box] of boxes) {
                if (element.contains(owner)) continue;
                const left = Math.max(line.left, box.left);
                const top = Math.max(line.top, box.top);
                const right = Math.min(line.right, box.right);
                const bottom = Math.min(line.bottom, box.bottom);
                // Lines are higher than their letters.
                if (right - left < 2 || bottom - top < 4) continue;
                const [x, y] = [(left + right) / 2, (top + bottom) / 2];
                const stack = document.elementsFromPoint(x, y);
                if (stack[0]?.closest(OPENED) || !stack.includes(owner)) continue;
                const over = stack.slice(0, stack.indexOf(owner));
                if (!over.some((each) => element.contains(each))) continue;
                found.set(text.data.trim(), element.outerHTML.slice(0, 120));
            }
        }
    }
    document.adoptedStyleSheets.pop();
    return Object.fromEntries(found);
}"""
LONG = "One paragraph with several words in it.\n\n" * 3 + "- one\n- two"
TURNS = (
    "I'm planning a trip to Kyoto in spring.",
    "I like tea.",
    LONG,
    "A farewell " * 30,
)


LOOKS = [
    (width, theme, language)
    for width, theme in ((1440, "light"), (1024, "dark"), (390, "light"))
    for language in ("en", "zh-hans")
]


def covers_nothing(page):
    """Check it when what is opening has opened."""
    for _ in range(20):
        if page.evaluate(COVERED) == {}:
            return
        page.wait_for_timeout(100)
    assert page.evaluate(COVERED) == {}, page.url


def nothing_floats_over_text(page):
    assert page.evaluate(FLOATING) == {}, page.url


@pytest.mark.parametrize("width", [1440, 390])
def test_bars_of_actions_lie_in_the_gaps(open_written, width):
    chat = open_written(*TURNS, width=width)
    compact_up_to(chat, 2, "A trip.")
    numbers = range(1, 2 * len(TURNS) + 1)
    for seq in numbers:
        message = chat.message(seq)
        message.scroll_into_view_if_needed()
        message.locator(".body").hover(position={"x": 5, "y": 5})
        expect(message.locator(".actions")).to_have_css("opacity", "1")
        covers_nothing(chat.page)
        # What is at the edge of the bar is a part of it.
        expect(message.locator(".actions > .seq")).to_be_in_viewport(ratio=1)


def test_bar_is_shown_for_the_pointed_message_only(open_written):
    chat = open_written("One", "Two")
    chat.message(1).locator(".body").click()
    chat.message(3).locator(".body").hover()
    expect(chat.message(3).locator(".actions")).to_have_css("opacity", "1")
    expect(chat.message(1).locator(".actions")).to_have_css("opacity", "0")


@pytest.mark.parametrize("width", [1440, 1000, 390])
def test_notice_lies_over_nothing_and_moves_no_text(open_written, width):
    chat = open_written(*TURNS, width=width)
    places = [chat.message(8).locator(".body"), chat.page.locator("#composer .box")]
    before = [place.bounding_box() for place in places]
    open_menu(chat, 7, "Pin")
    expect(chat.page.locator("#notice p")).to_be_visible()
    chat.page.mouse.move(0, 0)
    covers_nothing(chat.page)
    # Its own mark above the bubble is new.
    assert [place.bounding_box() for place in places][1:] == before[1:]
    assert abs(places[0].bounding_box()["y"] - before[0]["y"]) <= 1
    nothing_floats_over_text(chat.page)


@pytest.mark.parametrize("width", [1440, 390])
def test_notice_and_guide_stand_side_by_side(open_page, guided, width):
    chat = open_page(guided, width=width)
    page = chat.page
    page.click("form[action='/demo/'] button")
    act = page.locator("#guide-act")
    expect(act).to_have_text("Edit the summary", timeout=60_000 * PATIENCE)
    covers_nothing(page)
    act.click()
    summary = page.locator("#summary-text")
    expect(summary).to_be_focused()
    covers_nothing(page)
    summary.fill(summary.input_value().replace("Kyoto", "Nara"))
    page.get_by_role("button", name="Save as a new version").click()
    expect(page.locator("#notice p")).to_be_visible()
    covers_nothing(page)
    expect(chat.turns.last).to_contain_text("Nara")
    covers_nothing(page)


@pytest.fixture(scope="module")
def guided(make_site):
    with make_site(DEMO_TOKENS_PER_SECOND="1000") as running:
        yield running


@pytest.mark.parametrize("width", [1440, 1000, 390])
@pytest.mark.parametrize("path", ["", "account/"])
def test_pages_have_nothing_over_their_texts(open_page, site, path, width):
    page = open_page(site, width=width).page
    page.goto(f"{site.url}/{path}")
    covers_nothing(page)


@pytest.fixture
def show(open_page, seeded):
    """show(width, theme, language) -> the conversation of the pictures."""

    def show(width, theme, language):
        chat = open_page(seeded, is_home=False, width=width)
        page = chat.page
        page.context.clear_cookies()
        cookie = {"name": "django_language", "value": language, "url": seeded.url}
        page.context.add_cookies([cookie])
        page.emulate_media(color_scheme=theme)
        chat.sign_in("demo", "demo")
        nothing_floats_over_text(page)
        row = page.locator("#conversation-list .row > a").first
        chat.open(seeded.url + row.get_attribute("href"))
        return chat

    return show


@pytest.mark.parametrize(("width", "theme", "language"), LOOKS)
def test_text_has_no_box_over_it(show, width, theme, language):
    chat = show(width, theme, language)
    page = chat.page
    # Without what it finds, the search would prove nothing.
    body = page.locator("#message-30 .body")
    body.evaluate("(body) => { body.style = 'position: fixed; inset: 0' }")
    assert page.evaluate(FLOATING) != {}
    page.reload()
    chat.is_live()
    nothing_floats_over_text(page)
    points_at_messages(chat, width)
    for opener in (".message-menu", "header.bar > .menu", "#find"):
        chat.message(30).hover()
        summary = page.locator(f"{opener} > summary").locator("visible=true").last
        summary.click()
        expect(summary.locator("xpath=..")).to_have_attribute("open", "")
        nothing_floats_over_text(page)
        page.keyboard.press("Escape")
    page.locator("header.bar > .menu > summary").click()
    page.locator("header.bar > .menu button[hx-get$='/policy/']").click()
    expect(page.locator("#dialog h2")).to_be_visible()
    nothing_floats_over_text(page)
    page.keyboard.press("Escape")
    replays_from_the_first(page, width)


def points_at_messages(chat, width):
    """The bars of the last messages, the rail, and the strip of a closed pane."""
    page = chat.page
    for seq in (27, 28, 29, 30):
        chat.message(seq).locator(".body").hover()
        expect(chat.message(seq).locator(".actions")).to_have_css("opacity", "1")
        nothing_floats_over_text(page)
    stroke = chat.message(28).evaluate(PLACE)
    page.mouse.move(stroke - 3, chat.message(28).bounding_box()["y"] + 10)
    expect(page.locator("#turns .message.counterpart").first).to_be_visible()
    nothing_floats_over_text(page)
    if width > 390:
        page.keyboard.press("Alt+m")
        strip = page.locator(".strip")
        strip.hover()
        nothing_floats_over_text(page)
        page.keyboard.press("Alt+m")


def replays_from_the_first(page, width):
    tabs = page.locator(".tabs button")
    if width == 390:
        tabs.last.click()
    page.locator("[data-replay]").click()
    expect(page.locator("#replayed .message")).not_to_have_count(0)
    nothing_floats_over_text(page)
    if width == 390:
        tabs.first.click()
    page.locator("#moment").press("Home")
    expect(page.locator("#replayed .message")).to_have_count(2)
    nothing_floats_over_text(page)


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_shared_page_has_no_box_over_its_text(open_written, take_context, site, width):
    link = share(open_written(*TURNS), with_view=True)
    page = open_tab(take_context(width=width), site)
    page.goto(link)
    expect(page.locator("#replayed .message").first).to_be_visible()
    nothing_floats_over_text(page)
    page.get_by_role("button", name="Back to the conversation").click()
    message = page.locator("#turns .message").last
    message.hover()
    nothing_floats_over_text(page)
    covers_nothing(page)


@pytest.fixture(scope="module")
def staff(seeded):
    seeded.manage("create_user", "watcher", PASSWORD, "--staff")


@pytest.mark.parametrize(("width", "theme", "language"), LOOKS)
def test_admin_has_no_box_over_its_text(
    take_context, seeded, staff, width, theme, language
):
    page = open_tab(take_context(width=width), seeded)
    cookie = {"name": "django_language", "value": language, "url": seeded.url}
    page.context.add_cookies([cookie])
    page.emulate_media(color_scheme=theme)
    page.goto(f"{seeded.url}/admin/login/")
    page.fill("[name=username]", "watcher")
    page.fill("[name=password]", PASSWORD)
    page.click("[type=submit]")
    for path in ("", "memory/conversation/", "memory/summary/"):
        page.goto(f"{seeded.url}/admin/{path}")
        expect(page.locator("#content h1")).to_be_visible()
        nothing_floats_over_text(page)
        covers_nothing(page)


def test_notice_stays_beside_the_foot_bar_of_a_phone(open_written):
    chat = open_written("One", "Two", width=390, height=640)
    page, tabs = chat.page, chat.page.locator(".tabs button")
    tabs.last.click()
    page.locator(".sheet:has(.part-window) > .switch").click()
    expect(page.locator("#desk")).to_be_visible()
    tabs.first.click()
    open_menu(chat, 1, "Pin")
    expect(page.locator("#notice p")).to_be_visible()
    tabs.last.click()
    # At once: the pane is drawn again with the pin, at any time.
    page.evaluate("document.getElementById('desk').scrollIntoView()")
    covers_nothing(page)
    nothing_floats_over_text(page)
