"""The site as it is deployed: static files collected, scripts joined."""

import pytest
from playwright.sync_api import expect

from chatsite.staticfiles import JOINED

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def deployed(make_site, tmp_path_factory):
    env = {
        "DEBUG": "false",
        "SECRET_KEY": "only-for-this-test-" * 3,
        "ALLOWED_HOSTS": "127.0.0.1",
        "DJANGO_SETTINGS_MODULE": "chatsite.settings",
        "STATIC_ROOT": str(tmp_path_factory.mktemp("collected")),
        "CHAT_MODEL": "demo",
    }
    site = make_site(**env)
    site.manage("collectstatic", "--no-input", "--verbosity", "0")
    with site:
        yield site


# Of the whole life of a page, without those that follow what a user does.
LAYOUT_SHIFT = """() => new Promise((done) => {
    let sum = 0;
    const observer = new PerformanceObserver((list) => {
        for (const { hadRecentInput, value } of list.getEntries())
            if (!hadRecentInput) sum += value;
    });
    observer.observe({ type: "layout-shift", buffered: true });
    setTimeout(() => done(sum), 300);
})"""


def scripts_of(page):
    """Paths of the own scripts of the page, without hashes."""
    sources = page.locator("script[src]").evaluate_all(
        "all => all.map((each) => new URL(each.src).pathname)"
    )
    names = (source.removeprefix("/static/").split(".")[0] for source in sources)
    return {f"{name}.js" for name in names}


def test_scripts_that_are_joined_do_what_they_do_apart(open_page, deployed):
    chat = open_page(deployed)
    home = scripts_of(chat.page)
    assert {"js/page.js", "js/home-page.js"} <= home
    chat.page.locator("h1").click()
    chat.page.keyboard.press("?")
    expect(chat.page.get_by_role("dialog")).to_be_visible()
    chat.page.keyboard.press("Escape")
    chat.send("What is seen here?")
    chat.is_live()
    split = scripts_of(chat.page)
    assert {"js/page.js", "js/split-page.js", "js/sending.js"} <= split
    parts = {f"js/{part}.js" for names in JOINED.values() for part in names.split()}
    assert not parts & (home | split)
    expect(chat.in_state("done")).to_have_count(1)
    chat.say("And after it?")
    assert chat.page.evaluate(LAYOUT_SHIFT) == 0
