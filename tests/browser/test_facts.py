"""Facts about a user, from the offer to keep one until it is erased.

They are offered below a message, kept with one tap, sent in another conversation with
the link to their message, edited, replaced and erased.
"""

import pytest
from playwright.sync_api import expect

from .test_access import is_clean
from .test_languages import choose

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def own_site(make_site):
    """Messages of other tests would be facts of the same user."""
    with make_site(DEMO_TOKENS_PER_SECOND="1000") as running:
        yield running


@pytest.fixture
def learning(open_page, own_site):
    """Facts are on by default; no test leaves any behind."""
    page = open_page(own_site)
    page.create()
    return page


def keep(page, said, yes):
    page.say(said)
    page.message(1).locator(".fact-offer").get_by_role("button", name=yes).click()
    expect(page.page.locator(".fact-kept")).to_have_count(1)


def test_a_fact_is_kept_sent_elsewhere_edited_and_erased(learning):
    page = learning.page
    learning.say("Hello! I live in Zurich, so what can I see?")
    offer = learning.message(1).locator(".fact-offer")
    expect(offer.locator("q")).to_have_text("I live in Zurich")
    expect(offer.locator("span")).to_have_text("Remember this?")
    expect(offer.get_by_role("button")).to_have_text(["Here", "Everywhere", "No"])
    expect(learning.right.locator(".part-facts")).to_have_count(0)
    is_clean(page)
    offer.get_by_role("button", name="Everywhere").click()
    expect(page.locator(".fact-kept q")).to_have_text("I live in Zurich")
    is_clean(page)
    said_in = learning.url

    learning.create()
    learning.say("Hello")
    facts = learning.right.locator(".part-facts")
    expect(facts.locator("q")).to_have_text("I live in Zurich")
    learning.open_sheet("facts")
    is_clean(page)
    facts.locator("q").click()
    box = facts.locator(".in-place textarea")
    expect(box).to_be_focused()
    expect(facts.locator("q")).to_be_hidden()
    is_clean(page)
    box.fill("I live in Basel")
    box.press("Control+Enter")
    expect(facts.locator("q")).to_have_text("I live in Basel")
    expect(learning.right.locator("#desk")).to_contain_text("1 change")
    page.locator("#notice").get_by_text("Undo").click()
    expect(facts.locator("q")).to_have_text("I live in Zurich")
    facts.locator(".fact-list a").click()
    page.wait_for_url(f"{said_in}?at=1*")

    page.goto(f"{learning.site.url}/memory/")
    is_clean(page)
    page.locator(".fact-acts summary").click()
    page.locator(".fact-acts textarea").fill("I live in Bern")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".fact-rows q")).to_have_text("I live in Bern")
    expect(page.locator(".fact-rows")).to_contain_text("edited by you")

    learning.create()
    keep(learning, "I moved to Oslo last month.", "Everywhere")
    expect(page.locator("#notice")).to_contain_text("It replaces “I live in Bern”.")
    page.goto(f"{learning.site.url}/memory/")
    expect(page.locator("s")).to_have_text("I live in Bern")
    is_clean(page)
    for left in (1, 0):
        page.get_by_role("button", name="Erase").first.click()
        expect(page.get_by_role("button", name="Erase")).to_have_count(left)


def test_a_first_suggestion_is_asked_about_once(learning):
    page = learning.page
    page.goto(f"{learning.site.url}/")
    page.get_by_role("button", name="Remember: I live in Zurich").click()
    learning.is_live()
    questions = learning.message(1).locator(".fact-offer, .rule-offer")
    expect(questions).to_have_count(1)
    questions.get_by_role("button", name="Here", exact=True).click()
    expect(page.locator("#notice")).to_contain_text("Remembered.")
    expect(learning.right.locator(".part-facts q")).to_contain_text("I live in Zurich")
    learning.create()
    learning.say("Hello")
    expect(learning.right.locator(".part-facts")).to_have_count(0)
    page.goto(f"{learning.site.url}/memory/")
    expect(page.locator(".fact-rows")).to_contain_text("in its conversation only")
    page.get_by_role("button", name="Erase").click()
    expect(page.get_by_role("button", name="Erase")).to_have_count(0)
    # A no is remembered, in every conversation.
    for asked in (1, 0):
        learning.create()
        learning.say("I am a nurse, so what can I do?")
        expect(page.locator(".fact-offer")).to_have_count(asked)
        if asked:
            page.locator(".fact-offer").get_by_role("button", name="No").click()
            expect(page.locator("#notice")).to_contain_text("It is not remembered.")


def test_facts_are_shown_in_chinese(learning):
    page = learning.page
    choose(learning, "简体中文")
    keep(learning, "我住在苏黎世，推荐几个景点。", "所有对话")
    learning.create()
    learning.say("你好")
    learning.open_sheet("facts")
    facts = learning.right.locator(".part-facts")
    facts.get_by_role("button", name="编辑").click()
    facts.locator("textarea").fill("我住在伯尔尼")
    facts.get_by_role("button", name="保存").click()
    expect(facts.locator("q")).to_have_text("我住在伯尔尼")
    page.locator("#notice").get_by_text("撤销").click()
    expect(facts.locator("q")).to_have_text("我住在苏黎世")
    page.goto(f"{learning.site.url}/memory/")
    expect(page.locator("h1")).to_have_text("关于你的记忆")
    expect(page.locator(".fact-rows q")).to_have_text("我住在苏黎世")
    is_clean(page)
    page.get_by_role("button", name="清除").click()
    expect(page.get_by_role("button", name="清除")).to_have_count(0)
    learning.create()
    choose(learning, "English")
