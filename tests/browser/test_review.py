"""The admin in a browser: nothing on it breaks the security policy of the site."""

import pytest
from playwright.sync_api import expect

from tests.patience import PATIENCE

from .conftest import open_tab
from .pages import PASSWORD

pytestmark = pytest.mark.browser

PLACES = (
    "",
    "memory/conversation/",
    "memory/conversation/{pk}/change/",
    "memory/conversation/{pk}/timeline/",
    "memory/conversation/{pk}/request/2/",
    "memory/conversation/{pk}/figures/",
    "memory/conversation/{pk}/experiments/",
    "memory/message/",
    "memory/summary/",
    "memory/modelcall/",
    "chat/turn/",
    "feedback/feedback/",
    "chat/allowance/",
    "desk/accessevent/",
)


LONG_TITLE = "from memory.models import *; Conversation.objects.update(title='W' * 120)"

# A list with columns beside the screen.
IS_CUT = """() => [...document.querySelectorAll("#changelist .results")].some(
    (box) => box.scrollWidth > box.clientWidth)"""


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


def test_the_browser_has_nothing_to_report_about_the_admin(chat, admin, site):
    chat.say("My sister is called Ada.")
    site.manage("shell", "-c", LONG_TITLE)
    admin.goto(f"{site.url}/admin/memory/conversation/")
    link = admin.locator("#result_list tbody tr").first.locator("a").first
    pk = link.get_attribute("href").split("/")[-3]
    for place in PLACES:
        answer = admin.goto(f"{site.url}/admin/{place.format(pk=pk)}")
        assert answer.status == 200, place
        assert answer.header_value("content-security-policy")
        admin.locator("#content").wait_for()
        assert not admin.evaluate(IS_CUT), place
    chat.say("Her cat is called Tom.")
    check_steps(admin, f"{site.url}/admin/memory/conversation/{pk}/timeline/")


def read_colours(page):
    """The ground and the letters of a page, as they are drawn."""
    return page.evaluate(
        """() => { const {backgroundColor, color, fontFamily} =
            getComputedStyle(document.body);
            return [backgroundColor, color, fontFamily]; }"""
    )


def test_the_admin_has_the_colours_of_the_site(chat, admin, site):
    admin.goto(f"{site.url}/admin/")
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
