"""Long code, and code that is shown as a picture."""

import re

import pytest
from playwright.sync_api import expect

from .test_access import is_clean

pytestmark = pytest.mark.browser

LONG = "```python\n" + "".join(f"line_{n} = {n}\n" for n in range(60)) + "```"
SVG = """```svg
<svg viewBox="0 0 80 40"><style>rect { fill: rgb(1, 200, 3) }</style>
<rect width="80" height="40"/><script>parent.hit = 1</script>
<image href="http://127.0.0.1:9/away.png"/></svg>
```"""
HTML = """```html
<!doctype html><style>body { margin: 0; background: rgb(200, 1, 3) }</style>
<p style="color: white">Hello<br>you<img src="http://127.0.0.1:9/x" onerror="hit = 1">
<script>parent.hit = 1</script><iframe src="http://127.0.0.1:9/"></iframe>
```"""
BROKEN = "```svg\n<svg><rect\n```"
# The colour in the middle of the first picture.
COLOUR = """async (image) => {
    await image.decode();
    const canvas = new OffscreenCanvas(9, 9).getContext("2d");
    canvas.drawImage(image, 0, 0, 9, 9);
    return [...canvas.getImageData(4, 7, 1, 1).data];
}"""


def code_of(chat):
    return chat.message(1).locator(".body .code")


def test_long_code_is_folded_until_all_of_it_is_wanted(chat):
    chat.say(LONG)
    code = code_of(chat)
    button = code.get_by_role("button", name="Show all 60 lines")
    expect(button).to_have_attribute("aria-expanded", "false")
    height = "(node) => node.clientHeight"
    folded = code.locator("pre").evaluate(height)
    is_clean(chat.page)
    button.focus()
    chat.page.keyboard.press("Enter")
    fold = code.get_by_role("button", name="Fold")
    expect(fold).to_be_focused()
    assert code.locator("pre").evaluate(height) > 2 * folded
    fold.click()
    expect(button).to_be_visible()
    # It is the same after a reload.
    chat.page.reload()
    expect(button).to_be_visible()
    assert code.locator("pre").evaluate(height) == folded


@pytest.mark.parametrize(
    ("text", "colour"), [(SVG, [1, 200, 3]), (HTML, [200, 1, 3])], ids=["svg", "html"]
)
def test_shown_picture_has_its_styles_and_runs_nothing(chat, text, colour):
    page = chat.page
    page.set_viewport_size({"width": 390, "height": 844})
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    chat.say(text)
    code = code_of(chat)
    code.get_by_role("button", name="Show").click()
    image = code.get_by_role("img", name="Picture of the code above")
    expect(image).to_be_visible()
    assert image.evaluate(COLOUR)[:3] == colour
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    is_clean(page)
    assert page.evaluate("typeof hit") == "undefined"
    assert not [url for url in asked if ":9/" in url]
    code.get_by_role("button", name="Hide").click()
    expect(image).to_have_count(0)


def test_undrawable_picture_is_reported_in_both_languages(chat):
    chat.say(BROKEN)
    code_of(chat).get_by_role("button", name="Show").click()
    expect(code_of(chat)).to_contain_text("The code may be incomplete.")
    cookie = {"name": "django_language", "value": "zh-hans", "url": chat.site.url}
    chat.page.context.add_cookies([cookie])
    chat.page.reload()
    code_of(chat).get_by_role("button", name=re.compile("显示")).click()
    expect(code_of(chat)).to_contain_text("代码可能不完整")
