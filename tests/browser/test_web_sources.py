"""Sources of the web: links in the reply, and the list on the card of the call."""

import pytest
from playwright.sync_api import expect

from tests.fakes.web import RESULTS, origin, serve_web

from .test_access import PHONE, is_clean
from .test_tool_files import card

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def web():
    with serve_web() as server:
        server.origin = origin(server)
        server.found = [
            {
                "url": f"{server.origin}/article",
                "title": "The Kamo river and its bridges, from the hills to the Yodo",
                "content": "The Kamo runs through Kyoto for 31 kilometres.",
            },
            *RESULTS,
        ]
        yield server


@pytest.fixture(scope="module")
def with_web(make_site, web):
    """A site whose demo model searches a web on loopback."""
    with make_site(
        WEB_SEARCH=web.origin,
        WEB_PAGES_ENABLED="true",
        WEB_NETWORKS="127.0.0.1",
        DEFAULT_TOOLS="search_web,read_page",
        DEMO_TOKENS_PER_SECOND="200",
    ) as running:
        yield running


@pytest.fixture
def chat(open_page, with_web):
    page = open_page(with_web, is_home=False)
    page.create()
    return page


def search(chat):
    """The card of a search, open, once the reply has come."""
    chat.send("Search the web for the Kamo river")
    expect(chat.in_state("done")).to_have_count(1)
    found = card(chat, "search_web")
    found.locator("> summary").click()
    expect(found.locator(".tool-sources")).to_be_visible()
    return found


def cited(chat):
    return chat.page.locator(".message.assistant sup a")


def test_a_reply_links_to_its_sources(chat, web):
    found = search(chat)
    expect(cited(chat)).to_have_text(["[1]", "[2]", "[3]"])
    first = cited(chat).first
    assert first.get_attribute("href") == f"{web.origin}/article"
    assert first.get_attribute("title").startswith("The Kamo river and its bridges")
    assert first.get_attribute("rel") == "nofollow noopener noreferrer"
    with chat.page.context.expect_page() as opened:
        first.click()
    expect(opened.value.locator("h1")).to_have_text("The Kamo river")
    assert opened.value.evaluate("opener") is None
    opened.value.close()
    # What was asked, and where it came from.
    expect(found).to_contain_text('"query": "the Kamo river"')
    expect(found.locator(".tool-sources li")).to_have_count(4)
    expect(found.locator(".tool-sources li").nth(1)).to_contain_text("[2]")
    chat.page.reload()
    expect(cited(chat)).to_have_text(["[1]", "[2]", "[3]"])


def test_a_source_is_read_and_keeps_its_number(chat):
    search(chat)
    chat.send('use read_page {"address": "1"}')
    expect(chat.in_state("done")).to_have_count(2)
    expect(cited(chat).last).to_have_text("[1]")
    found = card(chat, "read_page")
    found.locator("> summary").click()
    expect(found.locator(".tool-sources")).to_contain_text("The Kamo river & its")
    expect(found.locator("pre").last).to_contain_text("for 31 kilometres")


def test_sources_are_accessible_and_stay_inside_a_phone(chat):
    search(chat)
    is_clean(chat.page)
    chat.page.set_viewport_size(PHONE)
    width = chat.page.evaluate("document.querySelector('#transcript').scrollWidth")
    assert width <= PHONE["width"]


def test_sources_are_named_in_chinese(chat, with_web):
    search(chat)
    chat.page.context.add_cookies(
        [{"name": "django_language", "value": "zh-hans", "url": with_web.url}]
    )
    chat.page.reload()
    found = card(chat, "search_web")
    expect(found.locator(".tool-name")).to_have_text("搜索网页")
    found.locator("> summary").click()
    listed = chat.page.get_by_role("list", name="来源")
    expect(listed.locator("li")).to_have_count(4)
