"""The pictures of the split page: the demo conversation, with what people do to it."""

from urllib.parse import urljoin

from playwright.sync_api import Page, expect

from tests.browser.test_reminders import HIDE

from .camera import PHONE, SCHEMES, WIDE, Camera

PERSON = "demo"
PACKING = b"""# Packing for Kyoto

- [x] passports, rail passes
- [ ] rain jackets, power adapters (100 V)
- [ ] guide to the temples
"""
DRAWING = """What could the sign of our trip look like? This is my sketch:

```svg
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 240 120">
  <rect width="240" height="120" fill="#f4efe2"/>
  <circle cx="170" cy="50" r="26" fill="#c8553d"/>
  <path d="M0 104 L60 40 L110 88 L140 62 L240 110 L240 120 L0 120 Z" fill="#1f5f6b"/>
  <path d="M44 57 L60 40 L75 54 L66 60 L58 52 Z" fill="#fff"/>
</svg>
```"""
DIAGRAM = """How do we get there? This is what I know:

```mermaid
flowchart TD
  A[Osaka airport] --> B{Before 10 pm?}
  B -->|yes| C[Haruka to Kyoto]
  B -->|no| D[Bus to the hotel]
  C --> E[Ryokan]
```"""
# The conversation of the first run, step by step, so that it is always compacted in
# the same places.
COMPACTIONS = """
from django.contrib.auth import get_user_model
from chatsite.pages import demo
from chatsite.ops.management.commands import seed_demo
from chatsite.llm import providers
from memory import transcript
person = get_user_model().objects.get(username="demo")
policy = demo.POLICY | {"trigger": ["tokens", 180], "summary_budget": 900}
values = {"policy": policy, "model": providers.DEMO}
made = transcript.create_conversation(person, title=demo.TITLE, **values)
for number, text in enumerate(demo.SCRIPT, start=1):
    seed_demo._play_turn(made, text, client_id=f"split-{number}")
    seed_demo._compact_seeded(made, said=2 * number)
"""


def take_all(camera: Camera) -> None:
    for scheme in SCHEMES:
        for name, size in (("wide", WIDE), ("phone", PHONE)):
            _overview(camera, name, size, scheme)
    with camera.visit(PERSON, language="zh-hans") as page:
        _open(page)
        camera.take(page, "page-chinese")
    with camera.visit(PERSON) as page:
        camera.take(page, "page-home")
        _open(page)
        _attachment(camera, page)
        _preview(camera, page)
        _diff(camera, page)
        _compare(camera, page)
        _trial(camera, page)
        _example(camera, page)
        _replay(camera, page)
        _shared(camera, page)
        _compactions(camera, page)
        _facts(camera, page)
        _branches(camera, page)
        _web(camera, page)
        _image(camera, page)
        _code(camera, page)
        _diagram(camera, page)
        _unread(camera, page)


def _overview(camera: Camera, name: str, size: tuple[int, int], scheme: str) -> None:
    """Take the overview; a phone shows the two views in two tabs."""
    with camera.visit(PERSON, scheme=scheme, size=size) as page:
        _open(page)
        camera.take(page, f"page-{name}-{scheme}")
        if size == PHONE:
            page.click("[data-tab-to=model]")
            camera.take(page, f"page-{name}-model-{scheme}")


def _open(page: Page) -> None:
    # A phone has the list in a drawer.
    newest = page.locator("#conversation-list a[href^='/c/']").first
    page.goto(urljoin(page.url, newest.get_attribute("href")))
    expect(page.locator("#connection")).to_have_attribute("data-state", "open")
    page.wait_for_load_state("networkidle")
    # From the divider down: the last summarised messages, then the window.
    if dividers := page.locator(".divider").count():
        _scroll_to(page, dividers - 1, 250)


def _scroll_to(page: Page, divider: int, above: int) -> None:
    page.locator(".divider").nth(divider).evaluate(
        """(divider, above) => {
            const pane = document.getElementById("transcript");
            pane.scrollTop = divider.offsetTop - pane.offsetTop - above;
        }""",
        above,
    )


def make_compactions(camera: Camera) -> None:
    # Not beside the site, which would compact, too, and elsewhere.
    camera.site.terminate()
    camera.site.manage("shell", "--no-imports", "-c", COMPACTIONS)
    camera.site.start()


def _compactions(camera: Camera, page: Page) -> None:
    """Several compactions, each of which stands beside the others."""
    make_compactions(camera)
    page.goto(f"{camera.site.url}/")
    _open(page)
    expect(page.locator(".divider").nth(2)).to_be_visible()
    page.locator(".divider > summary").last.click()
    _scroll_to(page, 1, 120)
    camera.take(page, "page-compactions")


def _attachment(camera: Camera, page: Page) -> None:
    file = {"name": "packing.md", "mimeType": "text/markdown", "buffer": PACKING}
    page.set_input_files("#attach-files", file)
    page.fill("#text", "What do I still have to pack?")
    expect(page.locator("#attachments")).to_contain_text("tokens")
    camera.take(page, "page-attachment")
    page.locator("#attachments .remove").click()
    page.fill("#text", "")


def _preview(camera: Camera, page: Page) -> None:
    message = page.locator(".message:has(.mark-window)").first
    message.hover()
    message.locator(".message-menu > summary").click()
    message.locator("[hx-get*='/memory/summarise/']").click()
    dialog = page.locator("#dialog")
    dialog.get_by_text("Draft a summary").click()
    expect(dialog.locator("textarea")).to_be_visible()
    camera.take(page, "page-preview")
    page.keyboard.press("Escape")


def _diff(camera: Camera, page: Page) -> None:
    page.locator("#context .part-summaries > summary").click()
    page.locator("#context").get_by_text("All versions").click()
    dialog = page.locator("#dialog")
    dialog.locator(".changes > summary").first.click()
    expect(dialog.locator(".diff ins").first).to_be_visible()
    camera.take(page, "page-diff")
    page.keyboard.press("Escape")


def _compare(camera: Camera, page: Page) -> None:
    """Take a reply with a summary, and one from before there was any."""
    opened = page.url
    last = page.locator("#turns .message.assistant").last.get_attribute("data-seq")
    page.goto(f"{opened.split('?')[0]}compare/?reply={last}&with=10")
    expect(page.locator(".causes")).to_be_visible()
    camera.take(page, "page-compare")
    page.get_by_role("link", name="Costs of the turns").click()
    expect(page.locator(".strip")).to_be_visible()
    camera.take(page, "page-costs")
    page.goto(opened)
    expect(page.locator("#connection")).to_have_attribute("data-state", "open")


def _trial(camera: Camera, page: Page) -> None:
    """Take the last reply, had the question been another one."""
    reply = page.locator("#turns .message.assistant").last
    reply.hover()
    reply.locator(".message-menu > summary").click()
    reply.get_by_text("Try again differently…").click()
    dialog = page.locator("#dialog")
    dialog.locator(".trial-more > summary").click()
    dialog.get_by_label("One message").select_option("edit")
    dialog.get_by_label("New words").fill("What does a ryokan cost?")
    dialog.get_by_role("button", name="Try", exact=True).click()
    expect(dialog.locator(".trial .sha")).to_be_visible()
    camera.take(page, "page-trials")
    page.keyboard.press("Escape")


def _example(camera: Camera, page: Page) -> None:
    """Take a reply, its correction, and what a model answers now."""
    opened = page.url
    reply = page.locator("#turns .message.assistant").last
    reply.hover()
    reply.locator(".message-menu > summary").click()
    reply.get_by_text("More…").click()
    reply.get_by_role("button", name="Mark as an example…").click()
    page.get_by_label("What should have been said").fill(
        "在鸭川附近，每晚最多 180 欧元。"
    )
    page.locator("#dialog").get_by_role("button", name="Save").click()
    expect(page.locator("#notice")).to_contain_text("is an example")
    page.goto(urljoin(page.url, "/examples/"))
    page.locator(".example-list a").first.click()
    page.get_by_role("button", name="Answer").click()
    expect(page.locator(".example-answer")).to_be_visible()
    camera.take(page, "page-example")
    page.goto(opened)
    expect(page.locator("#connection")).to_have_attribute("data-state", "open")


def _replay(camera: Camera, page: Page) -> None:
    page.click("[data-replay]")
    slider = page.locator("#moment")
    for _ in range(8):
        slider.press("ArrowLeft")
    # The reply that the slider says, not one that it passed.
    chosen = page.locator("#replay output").inner_text().split(" · ")[0]
    expect(page.locator("#context")).to_contain_text(f"As sent for {chosen.lower()}")
    camera.take(page, "page-replay")


def _shared(camera: Camera, page: Page) -> None:
    """Take a shared conversation as visitors see it, with what the model saw."""
    page.keyboard.press("Escape")
    page.locator("header.bar .menu > summary").click()
    page.get_by_role("button", name="Share…").click()
    page.get_by_label("Also show what the model saw").check()
    page.get_by_role("button", name="Create link").click()
    page.goto(page.locator("#dialog .made pre").inner_text())
    expect(page.locator("#context")).to_contain_text("Exactly what was sent")
    camera.take(page, "page-shared")


def _facts(camera: Camera, page: Page) -> None:
    """Take a fact of one conversation in a request of another."""
    _begin(page, "Hi! I live in Zurich, and I'm a vegetarian.")
    page.locator(".fact-offer").get_by_role("button", name="Everywhere").first.click()
    expect(page.locator(".fact-kept")).to_be_visible()
    _begin(page, "Where do I live?")
    page.locator(".part-facts > summary").click()
    camera.take(page, "page-facts")


def _branches(camera: Camera, page: Page) -> None:
    """One message said in three ways, and one of its replies asked something else."""
    _begin(page, "I plan five days in Kyoto for two.")
    _say(page, "We have 1,300 euros, and like gardens.")
    _say(page, "What did I say about gardens?")
    _edit_in_branch(page, 3, "We have 2,000 euros, and like old temples.")
    _say(page, "How much money do we have?")
    _edit_in_branch(page, 5, "What did I say about temples?")
    _edit_in_branch(page, 3, "We have 900 euros, and travel by bicycle.")
    page.locator("#message-3 nav a").last.click()
    expect(page.locator("#connection")).to_have_attribute("data-state", "open")
    camera.take(page, "page-branches")
    page.locator("#message-3 nav button").click()
    expect(page.locator("#dialog a")).to_have_count(4)
    camera.take(page, "page-branch-map")


def _say(page: Page, text: str) -> None:
    done = page.locator(".turn[data-state=done]")
    count = done.count()
    page.fill("#text", text)
    page.press("#text", "Enter")
    expect(done).to_have_count(count + 1)


def _edit_in_branch(page: Page, seq: int, text: str) -> None:
    before = page.url.partition("?")[0]
    message = page.locator(f"#message-{seq}")
    message.hover()
    message.locator("[data-edit]").click()
    page.fill("#text", text)
    page.press("#text", "Enter")
    page.wait_for_url(lambda url: url.partition("?")[0] != before)
    expect(message).to_contain_text(text)
    expect(page.locator(".turn:not([data-state=done])")).to_have_count(0)


def _web(camera: Camera, page: Page) -> None:
    """Take a reply that cites its sources, and the card of the search."""
    page.goto(urljoin(page.url, "/"))
    page.locator(".option > summary").click()
    page.get_by_label("Search the web").check()
    _send_first(page, "Search the web for the Kamo river")
    page.locator(".tool-card > summary").click()
    expect(page.locator(".tool-sources")).to_be_visible()
    camera.take(page, "page-web")


def _image(camera: Camera, page: Page) -> None:
    """Take a screenshot beside its message, and in the model's request."""
    page.goto(urljoin(page.url, "/"))
    shot = page.screenshot(clip={"x": 250, "y": 250, "width": 1180, "height": 500})
    file = {"name": "screenshot.png", "mimeType": "image/png", "buffer": shot}
    page.set_input_files("#attach-files", file)
    expect(page.locator("#attachments")).to_contain_text("1180 × 500")
    _send_first(page, "What do people see here first?")
    page.locator(".part-window > summary").click()
    page.locator(".part-window li summary").first.click()
    expect(page.locator("#context-body .sent-image").first).to_be_visible()
    camera.take(page, "page-image")


def _code(camera: Camera, page: Page) -> None:
    """Take a piece of SVG below which its picture is shown."""
    _begin(page, DRAWING)
    code = page.locator("#message-1 .code")
    code.get_by_role("button", name="Show").click()
    expect(code.get_by_role("img")).to_be_visible()
    page.locator("#message-1").scroll_into_view_if_needed()
    camera.take(page, "page-code")


def _diagram(camera: Camera, page: Page) -> None:
    """Take a flowchart in its frame."""
    _begin(page, DIAGRAM)
    code = page.locator("#message-1 .code")
    code.get_by_role("button", name="Show diagram").click()
    expect(code.frame_locator("iframe").locator("svg")).to_be_visible()
    page.locator("#message-1").scroll_into_view_if_needed()
    camera.take(page, "page-diagram")


def _unread(camera: Camera, page: Page) -> None:
    """Take the dot of a reply that came while its page was closed."""
    page.evaluate(HIDE, True)
    _say(page, "When do the gardens of Kyoto open?")
    other = page.context.new_page()
    other.goto(urljoin(page.url, "/"))
    _begin(other, "What else is there to see in April?")
    expect(other.locator("[data-unread]")).to_have_count(1)
    camera.take(other, "page-unread")
    other.close()


def _begin(page: Page, text: str) -> None:
    page.goto(urljoin(page.url, "/"))
    _send_first(page, text)


def _send_first(page: Page, text: str) -> None:
    page.fill("#text", text)
    page.press("#text", "Enter")
    expect(page.locator(".turn[data-state=done]")).to_have_count(1)
