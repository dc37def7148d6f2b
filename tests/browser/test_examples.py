"""A reply marked as an example from its menu, listed, and answered again: in both
languages and themes, wide and on a phone.
"""

import pytest
from playwright.sync_api import expect

from .test_access import is_clean

pytestmark = pytest.mark.browser


def test_a_reply_becomes_an_example_that_is_answered_again(chat):
    chat.say("I'm Lance.")
    chat.act(2, "⋯")
    page = chat.page
    chat.message(2).get_by_text("More…").click()
    chat.message(2).get_by_role("button", name="Mark as an example…").click()
    dialog = page.locator("#dialog")
    dialog.get_by_label("The reply was").select_option(label="Incomplete")
    dialog.get_by_label("What should have been said").fill("Hello <Lance>.")
    is_clean(page, "#dialog")
    dialog.get_by_role("button", name="Save").click()
    expect(page.locator("#notice")).to_contain_text("Reply #2 is an example.")
    page.goto(chat.site.url + "/examples/")
    is_clean(page)
    with page.expect_download() as download:
        page.get_by_role("link", name="Export as JSONL for training").click()
    assert "-1.jsonl" in download.value.suggested_filename
    page.get_by_role("link", name="Incomplete").last.click()
    page.get_by_role("button", name="Answer").click()
    answers = page.locator(".example-answer")
    expect(answers).to_contain_text("Demo model · The request as it was sent")
    beside = page.locator(".example-part", has_text="What was answered")
    assert abs(beside.bounding_box()["y"] - answers.bounding_box()["y"]) < 2
    is_clean(page)
    page.locator(".user-menu > summary").click()
    page.locator(".user-menu").get_by_role("button", name="简体中文").click()
    expect(page.locator("h1")).to_have_text("不完整 · 回复 #2")
    page.set_viewport_size({"width": 390, "height": 844})
    given = page.locator(".example-pair > .example-part").first
    assert given.bounding_box()["y"] < answers.bounding_box()["y"] - 20
