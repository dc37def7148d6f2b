"""Pages for everybody: axe-core finds nothing in either theme, wide or on a phone, the
letters have the five sizes, and what is long, large or written from right to left stays
inside.
"""

import pytest
from playwright.sync_api import expect

from ..servers import ROOT
from .conftest import open_tab
from .pages import ConversationPage
from .test_looks import have_five_sizes

pytestmark = pytest.mark.browser

AXE = (ROOT / "vendor/axe/axe.min.js").read_text()
# Without preload: axe would copy what a stylesheet imports into the page, past its CSP.
RUN = """async ([within, rules]) => {
    const options = { resultTypes: ["violations"], preload: false };
    if (rules) options.runOnly = rules;
    else options.rules = { "target-size": { enabled: !within } };
    const { violations } = await axe.run(within || document, options);
    return violations.flatMap(({ id, impact, nodes }) => nodes.map(
        ({ target, html }) => `${impact} ${id}: ${target} ${html.slice(0, 150)}`));
}"""
WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
# The admin's links take a moment to change their colour.
SHOW = """(theme) => {
    document.documentElement.dataset.theme = theme;
    document.getAnimations().filter((each) => each instanceof CSSTransition)
        .forEach((each) => each.finish());
}"""


def findings(page, within=None):
    """All rules in the light theme; those on colours again in the dark one."""
    found = look_at(page, "light", within)
    return found + look_at(page, "dark", within, ["color-contrast"])


def look_at(page, theme, within=None, rules=None):
    page.wait_for_load_state()  # what has no styles yet is too small for a finger
    if not page.evaluate("Boolean(window.axe)"):
        # A script element would be stopped by the page's CSP; this goes past it.
        page.evaluate(AXE)
    page.evaluate(SHOW, theme)
    return page.evaluate(RUN, [within, rules])


def is_clean(page, within=None):
    """Wide in both themes. What only a phone shows is small: dark is enough there."""
    found = findings(page, within)
    page.set_viewport_size(PHONE)
    found += look_at(page, "dark", within)
    tab = page.locator("[data-tab-to=model]")
    if within is None and tab.is_visible():
        tab.click()
        found += look_at(page, "dark", "#context")
        page.click("[data-tab-to=you]")
    have_five_sizes(page)
    page.set_viewport_size(WIDE)
    assert found == []


@pytest.fixture
def stranger(take_context, errors, seeded):
    """A page of a visitor who has not logged in yet."""
    page = ConversationPage(open_tab(take_context(**WIDE), seeded), seeded)
    page.report_to(errors)
    return page


@pytest.fixture
def demo(stranger):
    """The split page of the seeded conversation."""
    stranger.sign_in("demo", "demo")
    stranger.page.locator("#conversation-list .row > a", has_text="Kyoto").click()
    stranger.is_live()
    return stranger


def test_pages_around_the_chat_shut_nobody_out(stranger, errors):
    page, root = stranger.page, stranger.site.url
    page.goto(f"{root}/nothing/here/")
    is_clean(page)
    errors.clear()  # of the 404
    page.goto(f"{root}/accounts/login/")
    is_clean(page)
    page.get_by_role("link", name="Create an account").click()
    page.wait_for_url("**/signup/")
    is_clean(page)
    page.fill("[name=username]", "newcomer")
    for field in ("password1", "password2"):
        page.fill(f"[name={field}]", "correct horse battery")
    page.get_by_role("button", name="Create account").click()
    expect(page.get_by_role("heading", name="Two views")).to_be_visible()
    page.locator(".option > summary").click()
    is_clean(page)
    for path in ("/", "/account/", "/import/", "/memory/"):
        page.goto(f"{root}{path}")
        is_clean(page)
    # The account page in four tabs, without a script.
    page.goto(f"{root}/account/")
    tabs = page.locator(".tabs-of-account a")
    expect(page.locator(".tab:visible")).to_have_count(1)
    for name in ("memory", "privacy", "security", "you"):
        tabs.and_(page.locator(f"[href='#{name}']")).click()
        expect(page.locator(".tab:visible")).to_have_id(name)
        is_clean(page)
    page.goto(f"{root}/account/#privacy-heading")
    expect(page.locator(".tab:visible")).to_have_id("privacy")


def test_the_split_page_shuts_nobody_out(demo):
    page = demo.page
    is_clean(page)
    page.set_viewport_size(PHONE)
    assert look_at(page, "light") == []
    page.set_viewport_size(WIDE)
    for details in ("header.bar .menu", ".user-menu", ".divider >> nth=-1"):
        page.locator(details).evaluate("(element) => { element.open = true }")
    is_clean(page, "header.bar, .user-menu, .divider[open]")
    page.keyboard.press("Escape")
    page.locator("#find > summary").click()
    page.locator("#find [name=q]").fill("budget")
    expect(page.locator(".found-list li").first).to_be_visible()
    is_clean(page, "#find")
    page.keyboard.press("Escape")
    page.click("[data-replay]")
    expect(page.locator("#replayed .message").first).to_be_visible()
    is_clean(page, "#replay, .as-sent, #replayed > :last-child")


def test_the_list_and_dialogs_shut_nobody_out(demo):
    page = demo.page
    demo.act(28, "⋯")
    expect(demo.message(28).locator(".menu-items")).to_be_visible()
    is_clean(page, "#message-28")
    page.get_by_role("button", name="Summarise up to here…").click()
    page.get_by_role("button", name="Draft a summary").click()
    expect(page.locator("#proposal")).to_be_visible()
    is_clean(page, "#dialog")
    page.keyboard.press("Escape")
    demo.open_sheet("summaries")
    page.get_by_role("button", name="All versions").click()
    expect(page.locator("#dialog .version").first).to_be_visible()
    is_clean(page, "#dialog")
    page.keyboard.press("Escape")
    demo.memory_settings()
    page.locator("#policy .form-details > summary").click()
    is_clean(page, "#dialog")
    page.goto(f"{demo.site.url}/?q=budget")
    page.locator(".user-menu > summary").click()
    is_clean(page)


def test_a_reply_that_is_being_written_shuts_nobody_out(slow_chat):
    slow_chat.send("A long story, please")
    expect(slow_chat.page.locator("#turns .live .body").first).not_to_be_empty()
    assert findings(slow_chat.page) == []
