"""The looks of the pages, as a browser can measure them: the words in front, and the
rest at a glance.
"""

import pytest
from playwright.sync_api import expect

from .pages import change_demo, crawl

pytestmark = pytest.mark.browser
MOTION = "no-preference"


# Sizes and weights of all letters that a page has, whether they are in sight or not.
LETTERS = """() => {
    const sizes = new Map(), weights = new Map();
    for (const element of document.body.querySelectorAll("*")) {
        const texts = [...element.childNodes].filter(({ nodeType }) => nodeType === 3);
        const isText = texts.some(({ data }) => data.trim());
        if (!isText && !element.matches("input, textarea, select")) continue;
        if (element.closest("svg, math, script, template")) continue;
        const { fontSize, fontWeight } = getComputedStyle(element);
        const what = `${element.tagName}.${element.className}`;
        sizes.set(fontSize, what);
        weights.set(fontWeight, what);
    }
    return [Object.fromEntries(sizes), Object.fromEntries(weights)];
}"""
# A list of the admin with columns beside the screen.
IS_CUT = """() => [...document.querySelectorAll("#changelist .results")].some(
    (box) => box.scrollWidth > box.clientWidth)"""
DIALOGS = ("Memory settings…", "System prompt and temperature…", "Tools…")
SIZES = {"13px", "15px", "17px", "22px", "32px"}
# What the eye meets in the transcript: texts, buttons, links, marks and boxes.
OBJECTS = """() => {
    const pane = document.getElementById("transcript");
    const seen = (element) => {
        for (let up = element; up !== pane; up = up.parentElement) {
            const { opacity, clipPath, visibility } = getComputedStyle(up);
            if (opacity === "0" || clipPath !== "none") return false;
            if (visibility === "hidden") return false;
        }
        return element.getClientRects().length > 0;
    };
    const kinds = ".body, a[href], button, summary, time, .who, .mark, .label, .meta";
    const found = [...pane.querySelectorAll(kinds)].filter(seen);
    return found.filter((each) => !each.parentElement.closest(".body")).length;
}"""


@pytest.fixture
def demo(open_page, seeded):
    chat = open_page(seeded, is_home=False)
    chat.page.context.clear_cookies()
    chat.sign_in("demo", "demo")
    chat.page.locator("#conversation-list .row > a").click()
    chat.is_live()
    return chat


def have_five_sizes(page):
    sizes, weights = page.evaluate(LETTERS)
    assert set(sizes) <= SIZES, (page.url, sizes)
    assert set(weights) <= {"400", "600"}, (page.url, weights)


def test_dialogs_and_shared_pages_have_five_sizes_and_two_weights(demo):
    page = demo.page
    have_five_sizes(page)
    for name in (*DIALOGS, "Share…"):
        page.locator("header.bar .menu > summary").click()
        page.get_by_role("button", name=name).click()
        expect(page.locator("#dialog h2")).to_be_visible()
        have_five_sizes(page)
        if name != "Share…":
            page.keyboard.press("Escape")
    page.locator("#share-view").check()
    page.get_by_role("button", name="Create link").click()
    shared = page.locator(".share-links pre").first.text_content()
    page.keyboard.press("Escape")
    page.click("#find > summary")
    page.locator("#find [name=q]").fill("budget")
    expect(page.locator(".found-list li").first).to_be_visible()
    have_five_sizes(page)
    page.context.clear_cookies()
    page.goto(shared)
    have_five_sizes(page)


def test_every_page_that_a_link_leads_to_has_five_sizes_and_two_weights(demo):
    """The pages include those of the account, of costs, and the whole admin; the
    browser reports nothing about them either.
    """
    page, root = demo.page, demo.site.url
    before = change_demo(demo.site, on=True, title="W" * 120)
    try:
        measure_pages(page, root)
    finally:
        change_demo(demo.site, on=False, title=before)


def measure_pages(page, root):
    seen = set()
    for kind in crawl(page, root):
        assert not page.evaluate(IS_CUT), page.url
        have_five_sizes(page)
        seen.add(kind)
    assert {"/account/", "/c/one/costs/", "/c/one/compare/", "/admin/settings/"} <= seen
    pages = ("change", "timeline", "request/one", "figures", "experiments")
    assert {f"/admin/memory/conversation/one/{each}/" for each in pages} <= seen


def test_eight_exchanges_of_a_line_fit_on_a_screen(open_written):
    chat = open_written(*(f"My number is {number}." for number in range(10)))
    chat.say("My number is 10.")
    chat.page.locator("#text").hover()
    for seq in range(7, 23):
        expect(chat.message(seq).locator(".body")).to_be_in_viewport(ratio=1)
    own, reply = (chat.message(seq).bounding_box() for seq in (19, 20))
    assert own["height"] < 40
    assert reply["height"] < 40


def test_thirty_messages_are_few_objects(demo):
    demo.page.locator("#text").hover()
    assert demo.page.locator("#turns .message").count() >= 25
    assert demo.page.evaluate(OBJECTS) <= 60


def test_number_time_and_state_are_one_glance_away(open_written):
    chat = open_written("One", "Two")
    reply = chat.message(2)
    facts = [reply.locator(f".actions > {each}") for each in ("a.seq", "time", ".mark")]
    chat.page.locator("#text").hover()
    expect(reply.locator(".actions")).to_have_css("opacity", "0")
    reply.hover()
    expect(reply.locator(".actions")).to_have_css("opacity", "1")
    for fact in facts:
        expect(fact).to_be_in_viewport()
    chat.page.locator("#text").hover()
    reply.locator("a.seq").focus()
    expect(reply.locator(".actions")).to_have_css("opacity", "1")
    # An exception is said all the time.
    chat.act(1, "⋯")
    chat.page.get_by_role("button", name="Hide from the model").click()
    hidden = chat.message(1).locator("> header .mark")
    chat.page.locator("#text").hover()
    expect(hidden).to_have_text("Hidden from the model")
    expect(hidden).to_be_in_viewport()


def test_the_column_is_44_rem_of_17_px_on_28(open_written):
    chat = open_written("Hello", width=1900)
    assert chat.page.locator("#turns").bounding_box()["width"] == 44 * 16
    body = chat.message(2).locator(".body")
    expect(body).to_have_css("font-size", "17px")
    expect(body).to_have_css("line-height", "27.999px")
    own = chat.message(1).locator(".body").bounding_box()
    column = chat.page.locator("#turns").bounding_box()
    assert own["x"] + own["width"] == column["x"] + column["width"]
    assert own["width"] < column["width"] / 2
    expect(chat.message(2).locator(".body")).to_have_css(
        "background-color", "rgba(0, 0, 0, 0)"
    )


def test_the_message_box_is_one_line_that_grows(chat):
    box = chat.page.locator("#composer .box")
    assert box.bounding_box()["height"] <= 56
    chat.box.fill("One\nTwo\nThree\nFour")
    assert box.bounding_box()["height"] > 110


def test_the_message_box_of_the_home_page_stands_above_the_middle(open_page, site):
    page = open_page(site).page
    box = page.locator("#composer .box").bounding_box()
    assert 0.3 < (box["y"] + box["height"] / 2) / 900 < 0.45
    # An option opens below its row, as wide as the box.
    page.locator(".option > summary").click()
    panel = page.locator(".option[open] > .fields").bounding_box()
    assert panel["width"] > box["width"] - 40
    assert panel["y"] > box["y"] + box["height"]


def test_notice_floats_where_there_is_room_and_moves_nothing(open_written):
    chat = open_written("One")
    places = [chat.message(2).locator(".body"), chat.page.locator("#composer .box")]
    before = [place.bounding_box() for place in places]
    chat.act(2, "⋯")
    chat.message(2).get_by_text("Hide from the model").click()
    notice = chat.page.locator("#notice")
    expect(notice.locator("p")).to_be_visible()
    pill, (reply, box) = notice.bounding_box(), before
    assert places[1].bounding_box() == box
    assert reply["y"] + reply["height"] <= pill["y"] <= box["y"] - pill["height"]
    middle = box["x"] + box["width"] / 2
    assert abs(pill["x"] + pill["width"] / 2 - middle) <= 1
    # Only its own mark above it is new.
    assert abs(places[0].bounding_box()["y"] - reply["y"]) < 24
    # Its words stay as light as it is dark, also under the mouse.
    undo = notice.get_by_role("button", name="Undo")
    undo.hover()
    expect(undo).to_have_css("background-color", "rgba(0, 0, 0, 0)")


def test_a_dialog_opens_at_its_title(open_written):
    chat = open_written("Hello")
    chat.page.set_viewport_size({"width": 1440, "height": 300})
    for name, first in (
        ("Share…", "#share-days"),
        ("Tools…", ".tools .dialog-actions button"),
    ):
        chat.page.locator("header.bar .menu > summary").click()
        chat.page.get_by_role("button", name=name).click()
        expect(chat.page.locator(first).first).to_be_focused()
        expect(chat.page.locator("#dialog h2")).to_be_in_viewport(ratio=1)
        # The name of a tool stands right below its label.
        for row in chat.page.locator(".tools .check").all():
            assert row.bounding_box()["height"] <= 56
        chat.page.keyboard.press("Escape")


# From here on, and not of how the page was loaded. Bands of the stack grow with what
# they count, maybe more than half a second after the Enter that excuses a shift.
SHIFTS = """window.shifts = [];
new PerformanceObserver((list) => {
    for (const { hadRecentInput, sources } of list.getEntries()) {
        const moved = sources
            .filter(({ node }) => !node?.parentElement?.closest(".stack"))
            .map(({ node, previousRect, currentRect }) =>
                [node?.className || node?.nodeName, previousRect, currentRect]);
        if (!hadRecentInput && moved.length) window.shifts.push(JSON.stringify(moved));
    }
}).observe({ type: "layout-shift" });"""


def test_layout_is_stable_while_a_reply_is_written(open_written):
    chat = open_written("Hello")
    chat.page.evaluate(SHIFTS)
    chat.say("Tell me something")
    assert "\n".join(chat.page.evaluate("window.shifts")) == ""
