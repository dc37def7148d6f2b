"""Sites to drive, and a browser that reports every error it sees."""

import re
import shutil
from functools import partial

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.databases import copy_sqlite
from tests.fakes.upstream import Upstream
from tests.patience import PATIENCE
from tests.servers import Site, find_chromium
from tests.shown_parts import check_context

from .pages import PASSWORD, USER, ConversationPage
from .written import look_at_all, work_in, write_turns

FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update"),
    "--disable-sync",
)
# A reply of about two seconds: long enough to act in the middle of it.
SLOW_MODEL = "ok-slow:40:0.05"
REPORT_CSP = """addEventListener("securitypolicyviolation", (event) => console.error(
    `CSP: ${event.violatedDirective} ${event.blockedURI}`))"""
# What tests send and intercept would go through it.
NO_WORKER = """Object.defineProperty(
    navigator, "serviceWorker", { value: undefined })"""

# The site's, with static files that a browser may keep.
SETTINGS = f"{__package__}.settings"

CONVERSATION = re.compile(r"https?://[^/]+/c/[0-9a-f-]{36}/")
# Replies whose requests are looked at when a test ends.
LOOKED_AT = 3

expect.set_options(timeout=15_000 * PATIENCE)


def site_of(path, kind=Site, **env):
    database = {"DATABASE_URL": f"sqlite:///{path}"}
    settings = {"DEBUG": "true", "DJANGO_SETTINGS_MODULE": SETTINGS}
    return kind({**database, **settings, **env})


@pytest.fixture(scope="session")
def make_site(tmp_path_factory):
    """make_site(kind=Site, **env) -> Site, not yet started, with a database of its own
    and one user in it."""
    ready = tmp_path_factory.mktemp("ready") / "site.sqlite3"
    copy_sqlite(ready)
    site_of(ready).manage("create_user", USER, PASSWORD)

    def make(**env):
        return site_of(shutil.copy(ready, tmp_path_factory.mktemp("site")), **env)

    return make


@pytest.fixture(scope="session")
def site(make_site):
    """The demo model, quick."""
    with make_site(DEMO_TOKENS_PER_SECOND="200") as running:
        yield running


@pytest.fixture(scope="session")
def seeded(site):
    """Return the site with the user demo and the conversation of 31 messages of the
    pictures.
    """
    site.manage("seed_demo")
    return site


@pytest.fixture(scope="session")
def slow_provider():
    with Upstream() as server:
        yield server


@pytest.fixture(scope="session")
def slow_site(make_site, slow_provider):
    """A model at a provider that takes two seconds for a reply."""
    env = {
        "OPENAI_BASE_URL": slow_provider.url,
        "CHAT_MODEL": SLOW_MODEL,
        "SUMMARY_MODEL": "ok",
        "MODEL_MAX_ATTEMPTS": "1",
    }
    with make_site(**env) as running:
        yield running


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=find_chromium(), args=list(FLAGS)
        )
        yield chromium
        chromium.close()


@pytest.fixture
def errors():
    """Collect the errors of the browser; a test that expects some clears them."""
    seen = []
    yield seen
    assert seen == []


@pytest.fixture(scope="session")
def sessions():
    """The cookies of each site, so that not every test has to sign in. One that ends a
    session clears them."""
    return {}


@pytest.fixture(scope="session")
def kept_contexts():
    """Browsers by their size and motion that no test uses now. A new one has no cache:
    it asks the site for 45 static files before it shows anything."""
    return {}


@pytest.fixture
def motion(request):
    """Drawing what moves takes a third of a page's time. Files about what moves, or
    what one sees of a reply that is being written, have MOTION = "no-preference"."""
    return getattr(request.module, "MOTION", "reduce")


@pytest.fixture
def take_context(browser, kept_contexts, motion):
    """take_context(width=…) -> a browser without a session, for this test alone."""
    taken = []

    def take_context(*, width=1440, height=900):
        kind = (width, height, motion)
        context = kept_contexts.pop(kind, None)
        if context is None:
            context = browser.new_context(
                viewport={"width": width, "height": height}, reduced_motion=motion
            )
            context.add_init_script(REPORT_CSP)
            context.add_init_script(NO_WORKER)
        taken.append((kind, context))
        return context

    yield take_context
    for kind, context in taken:
        if kind in kept_contexts:
            context.close()
        else:
            # One that can't, as a page of it does not close, is not taken again.
            forget_person(context)
            kept_contexts[kind] = context


# The path of a page that each browser keeps open, of each site it has been to.
OPENER = "/healthz"


def open_tab(context, site):
    """A new page, in the process of all others of this site in this browser. Starting
    a process, with nothing compiled, takes longer than loading the page."""
    opener = next(filter(is_opener, pages_of(context, site)), None)
    if opener is None:
        opener = context.new_page()
        opener.goto(f"{site.url}{OPENER}")
    with context.expect_page() as opened:
        opener.evaluate("void window.open('about:blank')")
    return opened.value


def pages_of(context, site):
    return [page for page in context.pages if page.url.startswith(f"{site.url}/")]


def is_opener(page):
    return page.url.endswith(OPENER)


def forget_person(context):
    """Undo all that a test may have done to its browser, but not what is cached."""
    for page in context.pages:
        if not is_opener(page):
            page.close()
    context.unroute_all()
    context.set_offline(False)
    context.clear_permissions()
    context.clear_cookies()
    page = context.pages[0] if context.pages else context.new_page()
    everything = {"origin": "*", "storageTypes": "all"}
    session = context.new_cdp_session(page)
    session.send("Storage.clearDataForOrigin", everything)
    session.detach()


@pytest.fixture
def open_page(take_context, errors, sessions, write_in):
    """open_page(site, width=…) -> a signed-in page; a context is another browser. One
    that goes on to a conversation need not draw the list before it: is_home=False."""

    opened = []

    def open_page(site, *, context=None, is_home=True, **size):
        if context is None:
            context = take_context(**size)
            known = sessions.get(site.url, {"cookies": []})
            context.add_cookies(known["cookies"])
            write_in(site, look_at_all)
        page = ConversationPage(open_tab(context, site), site)
        page.report_to(errors)
        if is_home or site.url not in sessions:
            page.sign_in()
            sessions[site.url] = {"cookies": context.cookies(), "origins": []}
        opened.append(page)
        return page

    yield open_page
    for page in opened:
        check_shown(page)


def check_shown(page):
    """The parts of what the model sees at the end of a test sum up: of the next request
    and of those of the last replies."""
    found = None if page.page.is_closed() else CONVERSATION.match(page.page.url)
    if found is None:
        return
    page.page.context.set_offline(False)
    page.page.context.unroute_all()
    ask = partial(page.page.request.get, max_redirects=0)
    rows = ask(f"{found[0]}transcript.json")
    if not rows.ok:  # deleted, or of another user
        return
    said = [row for row in rows.json()["messages"] if row["role"] == "assistant"]
    for seq in ["", *(row["seq"] for row in said[-LOOKED_AT:])]:
        answer = ask(f"{found[0]}context.json", params={"reply": seq} if seq else {})
        if answer.ok:
            check_context(answer.json())


@pytest.fixture
def chat(open_page, site):
    page = open_page(site, is_home=False)
    page.create()
    return page


@pytest.fixture(scope="session")
def write_in(django_db_blocker):
    """write_in(site, work, *args): see work_in."""

    def write_in(*args):
        with django_db_blocker.unblock():
            return work_in(*args)

    return write_in


@pytest.fixture
def open_written(open_page, site, write_in):
    """open_written(*texts, width=…) -> the page of a conversation in which these
    messages have been answered, for tests of what comes after them."""

    def open_written(*texts, **size):
        page = open_page(site, is_home=False, **size)
        address = page.make()
        write_in(site, write_turns, address, *texts)
        page.open(address)
        return page

    return open_written


@pytest.fixture
def slow_chat(open_page, slow_site):
    page = open_page(slow_site, is_home=False)
    page.create()
    return page
