"""Two languages, and texts that run from the right."""

import re
from functools import partial

import pytest
from playwright.sync_api import expect

from tests.patience import wait_for

pytestmark = pytest.mark.browser

HEBREW = """שלום! הפונקציה `def add(a, b)` מחזירה סכום.

- פריט ראשון
- an item

```
a + b
```"""
ARABIC = "مرحبا، أريد رحلة إلى Kyoto مع 4 أشخاص."
# Where the first letters of an element stand, by its own box.
EDGES = """(element) => {
    const range = document.createRange();
    range.selectNodeContents(element);
    const text = range.getBoundingClientRect(), box = element.getBoundingClientRect();
    return {left: text.left - box.left, right: box.right - text.right};
}"""


def choose(chat, language):
    chat.page.locator(".user-menu > summary").click()
    chat.page.locator(".user-menu").get_by_role("button", name=language).click()
    chat.is_live()


def is_at_the_right(locator):
    edges = locator.evaluate(EDGES)
    return edges["right"] < 10 < edges["left"]


def test_the_page_and_its_socket_speak_the_language_that_was_chosen(chat):
    there = chat.url
    choose(chat, "简体中文")
    expect(chat.page.locator("html")).to_have_attribute("lang", "zh-hans")
    assert chat.url == there
    chat.say("Remember the number 71.")
    expect(chat.mark(1)).to_have_text("完整保留")
    expect(chat.message(2).locator(".who")).to_have_text("演示模型")
    expect(chat.status).to_have_text("回复已完成")
    expect(chat.page.locator("#text")).to_have_attribute("placeholder", "输入消息…")
    expect(chat.right.locator("h2")).to_have_text("模型看到的")
    shown = chat.message(1).locator("time").get_attribute("title")
    assert re.match(r"\d{4}/\d{1,2}/\d{1,2} \d\d:\d\d:\d\d$", shown)
    choose(chat, "English")
    chat.page.keyboard.press("Escape")
    expect(chat.mark(1)).to_have_text("In full")
    chat.say("Thanks")
    expect(chat.status).to_have_text("Reply complete")


def test_hebrew_and_arabic_run_from_the_right_and_code_from_the_left(chat):
    # The bubble is as wide as its last line, so that the others have room beside them.
    chat.say(f"{HEBREW}\n\n{'A long line in English. ' * 4}")
    body = chat.message(1).locator(".body")
    for words in (body.locator("p").first, *body.locator("li").all()):
        wait_for(partial(is_at_the_right, words))
    for code in ("p code", "pre"):
        expect(body.locator(code)).to_have_css("direction", "ltr")
    assert not is_at_the_right(body.locator("pre code"))
    expect(chat.message(1).locator("header")).to_have_css("direction", "ltr")
    chat.page.locator("#rename > summary").click()
    chat.page.locator("#rename [name=title]").fill(ARABIC)
    chat.page.locator("#rename button").click()
    for title in ("#conversation-title", "#sidebar a[aria-current] .title"):
        expect(chat.page.locator(title)).to_have_text(ARABIC)
        expect(chat.page.locator(title)).to_have_css("direction", "rtl")
    expect(chat.right.locator(".preview").first).to_have_css("direction", "rtl")
    chat.box.fill(ARABIC)
    expect(chat.box).to_have_css("direction", "rtl")
    chat.box.fill("an English word")
    expect(chat.box).to_have_css("direction", "ltr")
    chat.box.fill("")


def test_short_password_is_refused_in_the_language_of_the_page(browser, site):
    context = browser.new_context(locale="zh-CN")
    page = context.new_page()
    page.goto(f"{site.url}/accounts/signup/")
    page.fill("[name=username]", "wang")
    for field in ("password1", "password2"):
        page.fill(f"[name={field}]", "1234")
    page.click("main button.primary")
    form = page.locator("main form")
    expect(form).to_contain_text("密码太短，至少需要 8 个字符。")
    assert re.findall("[A-Za-z]{2,}", form.inner_text()) == []
    context.close()
