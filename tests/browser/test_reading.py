"""Replies to read: versions, branches, code, formulas, paper."""

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

CODE = """Look:

```python
def hello(name):  # greet
    return f"<b>{name}</b>" * 2
```

| Item | Price |
|---|---|
| 火车 | 75 |

It costs $5, and $a_1 * b_1 * c$ holds.
"""


def test_earlier_replies_can_be_leafed_through(open_written):
    chat = open_written("Hello")
    first = chat.text_of(2)
    chat.act(2, "Regenerate")
    expect(chat.message(3)).to_be_visible()
    expect(chat.message(2)).to_be_hidden()
    pager = chat.page.get_by_role("group", name="Versions of this reply")
    expect(pager).to_contain_text("2 / 2")
    # On the line of the signs.
    at, row = (
        each.bounding_box() for each in (pager, chat.message(3).locator(".actions"))
    )
    assert abs((at["y"] + at["height"] / 2) - (row["y"] + row["height"] / 2)) < 6
    pager.get_by_role("button", name="Previous version").click()
    # What turns them is loaded on first use.
    expect(chat.message(2)).to_be_visible()
    assert chat.text_of(2) == first
    expect(chat.message(3)).to_be_hidden()
    expect(pager).to_contain_text("1 / 2")
    chat.act(2, "What the model saw")
    expect(chat.right).to_contain_text("As sent for reply #2")
    chat.message(2).focus()
    chat.page.keyboard.press("]")
    expect(chat.message(3)).to_be_visible()
    expect(chat.right).to_contain_text("As sent for reply #2")


def test_a_conversation_branches_from_any_message(open_written):
    chat = open_written("First", "Second")
    source = chat.url
    chat.act(2, "Branch")
    chat.page.wait_for_url(lambda url: "/c/" in url and not url.startswith(source))
    chat.is_live()
    expect(chat.page.locator(".branched")).to_contain_text("at #2")
    expect(chat.page.locator("#turns .turn")).to_have_count(1)
    chat.say("Another way")
    assert [row["text"] for row in chat.transcript()][2] == "Another way"
    chat.open(source)
    expect(chat.page.locator("#turns")).not_to_contain_text("Another way")


SIZES = """(part) => [part, part.parentElement].map(
    (each) => parseFloat(getComputedStyle(each).fontSize))"""


def test_code_has_its_language_colours_and_a_copy_button(chat):
    chat.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    chat.say(CODE)
    body = chat.message(1).locator(".body")
    code = body.locator(".code").first
    expect(code.locator(".code-head span")).to_have_text("python")
    expect(code.locator(".tok-keyword").first).to_have_text("def")
    expect(code.locator(".tok-comment")).to_have_text("# greet")
    expect(code.locator("b")).to_have_count(0)
    drawn = body.inner_html()
    copy = code.get_by_role("button", name="Copy")
    copy.click()
    # What copies is loaded by the first click.
    expect(copy).to_contain_class("copied")
    read = chat.page.evaluate("() => navigator.clipboard.readText()")
    assert read == 'def hello(name):  # greet\n    return f"<b>{name}</b>" * 2\n'
    expect(body.locator("td").first).to_have_text("火车")
    formula = body.locator("math:has(msub)").first
    expect(formula.locator("msub").first).to_have_text("a1")
    assert formula.evaluate(SIZES) == [17, 17]
    chat.page.reload()
    chat.is_live()
    # The colours are loaded after the page.
    expect(code.locator(".tok-comment")).to_have_text("# greet")
    assert body.inner_html() == drawn


def test_a_reply_is_copied_as_markdown_without_https(chat):
    chat.say(CODE)
    chat.page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: null})")
    chat.message(2).hover()
    copy = chat.message(2).locator("[data-copy]")
    copy.click()
    expect(copy).to_contain_class("copied")
    chat.box.focus()
    chat.page.keyboard.press("Control+V")
    pasted = chat.box.input_value()
    assert pasted.strip() == chat.transcript()[1]["text"].strip()
    chat.box.fill("")


def test_print_has_the_transcript_and_the_account(open_written):
    chat = open_written("To be printed")
    chat.page.emulate_media(media="print")
    expect(chat.message(1)).to_be_visible()
    for gone in ("#composer", "#sidebar", "#context .stack", ".bar .menu"):
        expect(chat.page.locator(gone).first).to_be_hidden()
    lead = chat.page.locator(".reads")
    expect(lead).to_be_visible()
    expect(lead).to_contain_text("The model reads all")
    chat.page.locator("#conversation").evaluate("node => node.dataset.pane = 'closed'")
    expect(lead).to_be_visible()
    height = chat.page.evaluate("document.documentElement.scrollHeight")
    message = chat.message(2).bounding_box()
    assert message["y"] + message["height"] <= height
    chat.page.emulate_media(media="screen")
    expect(chat.box).to_be_visible()


def test_a_long_text_is_folded_until_it_is_unfolded(chat):
    chat.say("\n\n".join(f"Line {number}" for number in range(40)))
    message = chat.message(1)
    button = message.get_by_role("button", name="Show all")
    folded = height_of(message)
    assert folded < 450
    chat.page.emulate_media(media="print")
    expect(button).to_be_hidden()
    assert height_of(message) > 2 * folded
    chat.page.emulate_media(media="screen")
    button.click()
    expect(message).to_be_focused()
    assert height_of(message) > 2 * folded
    # Also when its turn is drawn again.
    chat.act(2, "Regenerate")
    expect(chat.message(3)).to_be_visible()
    expect(chat.in_state("done")).to_have_count(1)
    expect(button).to_have_count(0)
    assert height_of(message) > 2 * folded


WIDE = f"""| {" | ".join(f"a {n}" for n in range(12))} |
|{"-|" * 12}
| {" | ".join("x" * 12)} |

| one | two |
|---|---|
| 1 | 2 |
"""
WIDTHS = """(table) => ({
    cells: [...table.querySelectorAll("th, td")].map((cell) => cell.offsetWidth),
    tallest: Math.max(...[...table.rows].map((row) => row.offsetHeight)),
    scrolls: table.scrollWidth > table.clientWidth,
})"""


def test_a_wide_table_scrolls_before_its_cells_are_squeezed(open_written):
    chat = open_written(WIDE, width=390, height=844)
    tables = chat.message(1).locator(".body table")
    wide, narrow = (tables.nth(n).evaluate(WIDTHS) for n in (0, 1))
    assert min(wide["cells"]) >= 72
    assert wide["tallest"] <= narrow["tallest"] + 1
    assert (wide["scrolls"], narrow["scrolls"]) == (True, False)
    tables.first.evaluate("(table) => { table.scrollLeft = 1e6 }")
    expect(tables.first.locator("td").last).to_be_in_viewport()


def test_a_wide_formula_scrolls_in_its_message_as_a_table_does(open_written):
    terms = " + ".join(f"x_{{{number}}}" for number in range(30))
    text = f"{WIDE}\n\\begin{{align}}\ns &= {terms}\n\\end{{align}}"
    chat = open_written(text, width=390, height=844)
    body = chat.message(1).locator(".body")
    formula = body.locator("p:has(> math)")
    size = "(part) => parseFloat(getComputedStyle(part).fontSize)"
    assert formula.locator("math").evaluate(size) > formula.evaluate(size)
    assert formula.evaluate("(place) => place.scrollWidth > place.clientWidth")
    page_width = "document.documentElement.scrollWidth"
    assert chat.page.evaluate(page_width) == 390
    shadow = "(place) => getComputedStyle(place).backgroundImage"
    assert "gradient" in formula.evaluate(shadow)
    assert formula.evaluate(shadow) == body.locator("table").first.evaluate(shadow)


def height_of(element):
    return element.bounding_box()["height"]


def test_an_edited_message_keeps_its_earlier_wording_in_one_place(open_written):
    chat = open_written("First wording")
    chat.replace(1)
    chat.box.fill("Second wording")
    chat.box.press("Enter")
    expect(chat.message(4)).to_be_visible()
    earlier = chat.page.locator("details.superseded")
    expect(earlier).to_have_count(1)
    earlier.locator("> summary").click()
    expect(chat.message(1)).to_contain_text("First wording")
    expect(chat.message(2)).to_contain_text(re.compile("First|demo"))
