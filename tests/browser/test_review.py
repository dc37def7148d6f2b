"""The admin in a browser: its colours and its keys."""

import re

import pytest
from playwright.sync_api import expect

from tests.patience import PATIENCE

from .conftest import open_tab
from .pages import PASSWORD
from .test_access import PHONE, is_clean

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def staff(site):
    site.manage("create_user", "inspector", PASSWORD, "--staff")


@pytest.fixture
def admin(take_context, site, staff, errors):
    """Signed in as one of the staff, in a browser of their own."""
    page = open_tab(take_context(), site)
    page.set_default_timeout(30_000 * PATIENCE)
    page.on("console", lambda said: errors.append(f"{page.url}: {said.text}"))
    page.on("pageerror", lambda error: errors.append(f"{page.url}: {error}"))
    page.goto(f"{site.url}/admin/login/")
    page.fill("[name=username]", "inspector")
    page.fill("[name=password]", PASSWORD)
    page.click("[type=submit]")
    return page


def test_the_keys_lead_from_reply_to_reply(open_written, admin, site):
    open_written("My sister is called Ada.", "Her cat is called Tom.")
    admin.goto(f"{site.url}/admin/memory/conversation/")
    newest = admin.locator("#result_list tbody tr").first
    timeline = newest.locator(".field-timeline_link a, a[href*=timeline]").first
    check_steps(admin, site.url + timeline.get_attribute("href"))


def read_colours(page):
    """The ground and the letters of a page, as they are drawn."""
    return page.evaluate(
        """() => { const {backgroundColor, color, fontFamily} =
            getComputedStyle(document.body);
            return [backgroundColor, color, fontFamily]; }"""
    )


def test_the_admin_has_the_colours_of_the_site(chat, admin, site):
    admin.goto(f"{site.url}/admin/")
    assert admin.locator("#footer p").bounding_box()["x"] >= 16
    for theme, other in (("light", "dark"), ("dark", "light")):
        chat.page.emulate_media(color_scheme=theme)
        admin.emulate_media(color_scheme=theme)
        of_site = read_colours(chat.page)
        assert read_colours(admin) == of_site
        # Chosen in the admin, against the system: automatic, light, dark.
        admin.emulate_media(color_scheme=other)
        while admin.locator("html").get_attribute("data-theme") != theme:
            admin.locator(".theme-toggle:visible").first.click()
        assert read_colours(admin) == of_site
        while admin.locator("html").get_attribute("data-theme") != "auto":
            admin.locator(".theme-toggle:visible").first.click()


def check_steps(admin, url):
    """The keys go from reply to reply, but not while the user types."""
    admin.goto(f"{url}?tab=view")
    admin.keyboard.press("[")
    expect(admin).to_have_url(f"{url}?tab=view&reply=2")
    admin.wait_for_load_state("load")
    admin.keyboard.press("]")
    expect(admin).to_have_url(f"{url}?tab=view&reply=4")
    admin.wait_for_load_state("load")
    admin.locator("[name=reply]").press("[")
    expect(admin).to_have_url(f"{url}?tab=view&reply=4")


def test_policies_are_tried_with_a_sample(seeded, admin):
    admin.goto(f"{seeded.url}/admin/experiments/sample/add/")
    admin.get_by_label("Conversations").fill("0")
    preset = admin.locator("[name=form-0-preset]")
    preset.select_option("langgraph")
    admin.get_by_role("button", name="Estimate").click()
    expect(admin.locator(".errornote")).to_contain_text("Nothing was started")
    expect(preset).to_have_value("langgraph")
    admin.get_by_label("Conversations").fill("1")
    # Of all that other tests have left here, the long one.
    admin.get_by_label("With at least so many messages").fill("30")
    admin.get_by_role("button", name="Estimate").click()
    expect(admin.get_by_role("status")).to_contain_text("It is replayed 3 times.")
    expect(admin.get_by_role("status")).to_contain_text("At most")
    is_clean(admin)
    admin.get_by_role("button", name="Start").click()
    expect(admin.locator("h1", has_text="Sample")).to_be_visible()
    # It is drawn again when all replays have ended.
    replays = admin.locator(".experiment-progress")
    expect(replays).to_have_count(0, timeout=60_000 * PATIENCE)
    listed = admin.locator(".experiment-list")
    expect(listed).not_to_contain_text(re.compile("Failed|Stopped"))
    costs = admin.locator(".experiment-costs")
    expect(costs).to_contain_text("Means over 1 of 1 conversations")
    expect(costs).to_contain_text("±")
    expect(costs.locator(".experiment-tick")).to_have_count(0)
    is_clean(admin)
    admin.set_viewport_size(PHONE)
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert admin.evaluate(wide) <= 0
    admin.get_by_text("The conversations", exact=True).click()
    admin.locator(".experiment-list a").last.click()
    expect(admin.get_by_text("langgraph").first).to_be_visible()
