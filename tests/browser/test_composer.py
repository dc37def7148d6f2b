"""The message box: keys, drafts, refusals."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


def test_enter_sends_and_shift_enter_breaks_the_line(chat):
    chat.box.press_sequentially("one")
    chat.box.press("Shift+Enter")
    chat.box.press_sequentially("two")
    expect(chat.turns).to_have_count(0)
    chat.box.press("Enter")
    expect(chat.box).to_have_value("")
    expect(chat.message(1)).to_be_visible()
    assert chat.transcript()[0]["text"] == "one\ntwo"


def test_enter_that_ends_a_composition_does_not_send(chat):
    chat.box.focus()
    devtools = chat.page.context.new_cdp_session(chat.page)
    composition = {"text": "你好", "selectionStart": 2, "selectionEnd": 2}
    devtools.send("Input.imeSetComposition", composition)
    key = {"key": "Process", "code": "Enter", "windowsVirtualKeyCode": 229}
    devtools.send("Input.dispatchKeyEvent", {"type": "rawKeyDown", **key})
    devtools.send("Input.insertText", {"text": "你好"})
    expect(chat.box).to_have_value("你好")
    chat.box.press_sequentially("！")
    expect(chat.turns).to_have_count(0)
    chat.box.press("Enter")
    expect(chat.message(1)).to_contain_text("你好！")


@pytest.mark.parametrize(
    "event", [{"key": "Enter", "isComposing": True}, {"key": "Enter", "keyCode": 229}]
)
def test_it_knows_both_signs_of_a_composition(chat, event):
    chat.box.fill("还没写完")
    chat.box.dispatch_event("keydown", {**event, "bubbles": True})
    expect(chat.turns).to_have_count(0)
    expect(chat.box).to_have_value("还没写完")


def test_a_draft_outlives_a_reload(chat):
    chat.box.press_sequentially("Half a thou")
    chat.page.reload()
    expect(chat.box).to_have_value("Half a thou")


def test_a_draft_belongs_to_its_conversation(chat):
    chat.box.press_sequentially("Only here")
    chat.create()
    expect(chat.box).to_have_value("")


def test_one_can_type_on_while_a_reply_streams(slow_chat):
    slow_chat.send("Something long")
    expect(slow_chat.in_state("running")).to_have_count(1)
    slow_chat.box.press_sequentially("the next thing", delay=30)
    expect(slow_chat.in_state("done")).to_have_count(1)
    expect(slow_chat.box).to_have_value("the next thing")
    expect(slow_chat.box).to_be_focused()


@pytest.mark.parametrize("text", ["", "  \n ", "a\0b"])
def test_the_server_refuses_and_the_text_stays(chat, text):
    chat.box.evaluate("(box, text) => { box.value = text }", text)
    chat.page.click("#send")
    expect(chat.error).not_to_be_empty()
    expect(chat.box).to_have_value(text)
    expect(chat.turns).to_have_count(0)
    chat.say("And now something proper")


def test_half_a_surrogate_pair_is_refused(chat):
    chat.box.evaluate("(box) => { box.value = 'a' + String.fromCharCode(0xd800) }")
    chat.page.click("#send")
    expect(chat.error).to_contain_text("surrogate")
    assert chat.transcript() == []


def test_a_text_over_the_limit_stays_and_the_limit_is_named(chat):
    long = "字" * 32_001
    chat.box.fill(long)
    chat.box.press("Enter")
    expect(chat.error).to_contain_text("32,000")
    expect(chat.box).to_have_value(long)
    chat.send("字" * 32_000)
    assert len(chat.transcript()[0]["text"]) == 32_000


def test_emoji_count_once_towards_the_limit(chat):
    chat.send("😀" * 31_999)
    assert len(chat.transcript()[0]["text"]) == 31_999


def test_every_character_arrives(chat):
    text = " lead\u2028\u202eabc 👩\u200d👩\u200d👧 e\u0301 <b>&amp; {x} {{ y }}\ttail "
    chat.send(text)
    assert chat.transcript()[0]["text"] == text
