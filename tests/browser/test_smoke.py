"""Every page that a link leads to, in both languages, and a reply on one of them."""

import re

import pytest
from playwright.sync_api import expect

from .pages import change_demo, crawl

pytestmark = pytest.mark.browser
CHINESE = re.compile(r"[\u4e00-\u9fff]{2}")
BEFORE_LOG_IN = ("/accounts/login/", "/accounts/signup/")


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_every_page_opens_without_an_error(open_page, seeded, language):
    chat = open_page(seeded, is_home=False)
    page, root = chat.page, seeded.url
    page.context.clear_cookies()
    chosen = {"name": "django_language", "value": language, "url": root}
    page.context.add_cookies([chosen])
    for path in BEFORE_LOG_IN:
        assert page.goto(root + path).ok
        speaks(page, language)
    chat.sign_in("demo", "demo")
    title = change_demo(seeded, on=True, title="Trip")
    try:
        for _ in crawl(page, root):
            speaks(page, language)
    finally:
        change_demo(seeded, on=False, title=title)
    page.context.clear_cookies(name="sessionid")
    chat.sign_in()
    chat.create()
    chat.say("Hello")
    expect(chat.message(2).locator(".body")).not_to_be_empty()


def speaks(page, language):
    assert page.locator("html").get_attribute("lang") == language, page.url
    words = page.locator("body").inner_text()
    assert words.strip(), page.url
    assert language == "en" or CHINESE.search(words), page.url
