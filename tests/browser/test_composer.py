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


def test_enter_breaks_the_line_where_the_account_says_so(chat, site):
    page = chat.page
    address = page.url
    for is_on in (True, False):
        page.goto(f"{site.url}/account/")
        page.get_by_label("Enter starts a new line").set_checked(is_on)
        page.locator("form[action$='/account/enter/'] button").click()
        expect(page.get_by_text("Saved.")).to_be_visible()
        page.goto(f"{site.url}/" if is_on else address)
        assert page.locator("#composer-hint").inner_text().startswith("Enter") != is_on
        page.goto(address)
        chat.box.press_sequentially("one")
        chat.box.press("Enter")
        if is_on:
            chat.box.press_sequentially("two")
            expect(chat.box).to_have_value("one\ntwo")
            expect(chat.turns).to_have_count(0)
            chat.box.press("Control+Enter")
        expect(chat.box).to_have_value("")
        expect(chat.turns).to_have_count(1 if is_on else 2)
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
    # Browsers have two signs of a composition.
    for sign in ({"isComposing": True}, {"keyCode": 229}):
        event = {"key": "Enter", "bubbles": True, **sign}
        chat.box.dispatch_event("keydown", event)
        expect(chat.box).to_have_value("你好")
    chat.box.press_sequentially("！")
    expect(chat.turns).to_have_count(0)
    chat.box.press("Enter")
    expect(chat.message(1)).to_contain_text("你好！")


def test_a_draft_outlives_a_reload_and_belongs_to_its_conversation(chat):
    chat.box.press_sequentially("Half a thou")
    chat.page.reload()
    expect(chat.box).to_have_value("Half a thou")
    chat.create()
    expect(chat.box).to_have_value("")


def test_an_edit_gives_a_draft_back_whether_it_is_sent_or_cancelled(open_written):
    chat = open_written("First wording")
    chat.box.fill("half a thought")
    chat.act(1, "Edit")
    expect(chat.box).to_have_value("First wording")
    chat.page.reload()
    expect(chat.box).to_have_value("First wording")
    chat.page.click("#editing-cancel")
    expect(chat.box).to_have_value("half a thought")
    chat.replace(1)
    chat.box.fill("Second wording")
    chat.box.press("Enter")
    expect(chat.message(3)).to_contain_text("Second wording")
    expect(chat.box).to_have_value("half a thought")
    expect(chat.page.locator("#editing")).to_be_hidden()


def test_up_in_the_empty_box_edits_the_last_message(open_written):
    chat = open_written("First", "Second")
    chat.box.press_sequentially("x")
    chat.box.press("ArrowUp")
    expect(chat.box).to_have_value("x")
    chat.box.fill("")
    chat.box.press("ArrowUp")
    expect(chat.box).to_have_value("Second")
    expect(chat.page.locator("#editing")).to_contain_text("#3")


def test_composer_accepts_typing_while_a_reply_streams(slow_chat, slow_provider):
    with slow_provider.unfinished():
        slow_chat.send("Something long")
        expect(slow_chat.in_state("running")).to_have_count(1)
        slow_chat.box.press_sequentially("the next thing", delay=30)
    expect(slow_chat.in_state("done")).to_have_count(1)
    expect(slow_chat.box).to_have_value("the next thing")
    expect(slow_chat.box).to_be_focused()


def test_the_server_refuses_and_the_text_stays(chat):
    # Nothing is no mistake.
    for text in ("", "  \n "):
        chat.box.fill(text)
        chat.box.press("Enter")
        expect(chat.error).to_be_empty()
    for text in ("a\0b", "half: \ud800"):
        code = "(box, codes) => { box.value = String.fromCharCode(...codes) }"
        chat.box.evaluate(code, [ord(letter) for letter in text])
        chat.page.click("#send")
        expect(chat.error).not_to_be_empty()
        kept = chat.box.evaluate("(box) => [...box.value].map((c) => c.charCodeAt(0))")
        assert kept == [ord(letter) for letter in text]
        chat.error.evaluate("(line) => { line.textContent = '' }")
    assert chat.transcript() == []
    chat.say("And now something proper")


def test_enter_in_the_empty_box_of_the_home_page_does_nothing(open_page, site):
    chat = open_page(site)
    for text in ("", "  \n "):
        chat.box.fill(text)
        chat.box.press("Enter")
        expect(chat.error).to_be_empty()
        assert chat.box.evaluate("(box) => box.validationMessage") == ""
    expect(chat.page).to_have_url(f"{site.url}/")


def test_a_text_over_the_limit_stays_and_the_limit_is_named(chat):
    long = "字" * 32_001
    chat.box.fill(long)
    chat.box.press("Enter")
    expect(chat.error).to_contain_text("32,000")
    expect(chat.box).to_have_value(long)
    chat.send("字" * 32_000)
    # Some are two units of JavaScript; each counts once.
    chat.send("😀" * 20_000)
    texts = [row["text"] for row in chat.transcript() if row["role"] == "user"]
    assert [len(text) for text in texts] == [32_000, 20_000]


def test_every_character_arrives(chat):
    text = " lead\u2028\u202eabc 👩\u200d👩\u200d👧 e\u0301 <b>&amp; {x} {{ y }}\ttail "
    chat.send(text)
    assert chat.transcript()[0]["text"] == text


# Counts, in each frame from here on, the messages with this text.
COUNT_MESSAGES = """(text) => {
    window.counts = [];
    const look = () => {
        const all = [...document.querySelectorAll(".message.user .body")];
        counts.push(all.filter((each) => each.textContent.includes(text)).length);
        requestAnimationFrame(look);
    };
    document.getElementById("text").addEventListener(
        "keydown", () => requestAnimationFrame(look), { once: true });
}"""


def test_own_message_is_there_in_the_first_frame_and_never_twice(chat):
    chat.page.evaluate(COUNT_MESSAGES, "Is it there?")
    chat.say("Is it there?")
    expect(chat.page.locator("#waiting")).to_be_hidden()
    assert set(chat.page.evaluate("counts")) == {1}


def test_own_message_is_drawn_before_the_server_answers(chat):
    received = []
    chat.page.route_web_socket(
        "**/ws/c/**", lambda page: page.on_message(lambda text: received.append(text))
    )
    chat.page.reload()
    chat.is_live()
    chat.box.fill("Nobody answers")
    chat.box.press("Enter")
    expect(chat.page.locator("#waiting .body")).to_have_text("Nobody answers")
    expect(chat.page.locator("#waiting .mark")).to_be_hidden()
    expect(chat.box).to_have_value("")
    assert len(received) == 1
