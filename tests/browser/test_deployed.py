"""The site as it is deployed: static files collected; and its requests, also before."""

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
# Wherever the mouse lies when a page opens is the first use of that part.
NO_MOUSE = "addEventListener('pointerover', (e) => e.stopImmediatePropagation(), true)"


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


@pytest.fixture(params=["development", "deployed"])
def either(request):
    name = "site" if request.param == "development" else "deployed"
    return request.getfixturevalue(name)


@pytest.fixture
def count_requests(either, take_context, open_page):
    """count_requests(path, width=…) -> the paths that an empty browser requests."""

    def count(path, **size):
        known = open_page(either, **size)
        context = take_context(**size)
        context.add_cookies(known.page.context.cookies())
        page, found = context.new_page(), []
        page.add_init_script(NO_MOUSE)
        page.on("request", lambda request: found.append(urlsplit(request.url).path))
        page.on("websocket", lambda socket: found.append(urlsplit(socket.url).path))
        page.route("**/*", lambda route: route.continue_())
        page.goto(f"{either.url}{path}")
        page.wait_for_load_state("networkidle")
        return found

    return count


def kinds_of(paths, ending):
    names = (path.removeprefix("/static/") for path in paths if path.endswith(ending))
    return [re.sub(r"\.[0-9a-f]{12}", "", name) for name in names]


def test_home_page_has_one_stylesheet_and_one_script(count_requests):
    for width in (1440, 390):
        found = count_requests("/", width=width)
        assert kinds_of(found, ".css") == ["bundles/home.css"]
        assert kinds_of(found, ".js") == ["bundles/home.js"]
        assert len(found) <= 8


def test_split_page_makes_at_most_14_requests(count_requests, open_page, either):
    chat = open_page(either)
    chat.create()
    chat.say("What is seen here?")
    found = count_requests(urlsplit(chat.url).path)
    assert kinds_of(found, ".css") == ["bundles/conversation.css", "css/print.css"]
    assert kinds_of(found, ".js")[:1] == ["bundles/conversation.js"]
    assert len(found) <= 14, found


def test_bundles_are_cached_forever(open_page, deployed):
    page = open_page(deployed).page
    for address in page.locator("link[data-parts], script[src]").evaluate_all(
        "all => all.map((each) => each.href || each.src)"
    ):
        control = page.request.get(address).headers["cache-control"]
        assert control == "max-age=315360000, public, immutable"


def test_scripts_of_bundles_do_what_they_do_apart(open_page, deployed):
    chat = open_page(deployed)
    chat.page.locator("h1").click()
    chat.page.keyboard.press("?")
    expect(chat.page.get_by_role("dialog")).to_be_visible()
    chat.page.keyboard.press("Escape")
    chat.send("What is seen here?")
    chat.is_live()
    expect(chat.in_state("done")).to_have_count(1)
    chat.say("And after it?")
    assert chat.page.evaluate(LAYOUT_SHIFT) == 0
