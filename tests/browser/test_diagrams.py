"""Diagrams of Mermaid, drawn in a frame without origin and network."""

import socket
from threading import Thread

import pytest
from playwright.sync_api import expect

from .test_access import is_clean

pytestmark = pytest.mark.browser

FLOW = "flowchart TD\n  A[Start] --> B{Late?}\n  B -->|yes| C[结束]"
KINDS = (
    FLOW,
    "sequenceDiagram\n  Alice->>Bob: Hello\n  Bob-->>Alice: 你好",
    "classDiagram\n  Animal <|-- Duck\n  Animal : +int age",
    "stateDiagram-v2\n  [*] --> Still\n  Still --> [*]",
    "erDiagram\n  CUSTOMER ||--o{ ORDER : places",
    "gantt\n  dateFormat YYYY-MM-DD\n  section A\n  Plan :a, 2026-01-01, 9d",
    'pie title Pets\n  "Dogs" : 386\n  "Cats" : 85',
)
BROKEN = "flowchart TD\n  A[Start --> B"
# Each is drawn, or said to be broken; URL is an address that nothing may ask.
HOSTILE = (
    """flowchart LR
  A["<script>fetch('URL/1')</script><img src=URL/2 onerror=top.hit=1>"] --> B
  B["<a href='URL/3' target=_top>away</a><iframe src=URL/4></iframe>"]""",
    """flowchart LR
  A[one] --> B[two] --> C[three]
  click A "javascript:top.hit=1"
  click B href "URL/5" _blank
  click C call fetch("URL/6")""",
    """%%{init: {"securityLevel": "loose", "htmlLabels": true, "flowchart": {
"htmlLabels": true}, "themeCSS": "@import url(URL/7); svg {background: url(URL/8)}",
"themeVariables": {"fontFamily": "x; } @import url(URL/9); a {"}}}%%
flowchart LR
  A["<b>bold</b><img src=URL/10>"] --> B
  click A "URL/11\"""",
    """flowchart LR
  A@{ img: "URL/12", label: "picture", w: 60, h: 60 }
  style A fill:url(URL/13)""",
    """sequenceDiagram
  participant A
  links A: {"Go": "URL/14", "Run": "javascript:top.hit=1"}
  A->>B: <img src=URL/15 onerror=top.hit=1>""",
)
# What a script would do that had got into the frame all the same.
ATTEMPTS = """(url) => {
    const failed = [];
    const attempt = (act) => { try { act(); } catch { failed.push(1); } };
    attempt(() => document.cookie);
    attempt(() => localStorage.length);
    attempt(() => parent.document.title);
    attempt(() => { top.location = url; });
    fetch(url).catch(() => {});
    navigator.sendBeacon(url, "x");
    new Image().src = url;
    attempt(() => new WebSocket(url.replace("http", "ws")));
    import(url).catch(() => {});
    open(url);
    const form = Object.assign(document.createElement("form"), { action: url });
    const inner = Object.assign(document.createElement("iframe"), { src: url });
    const style = Object.assign(document.createElement("style"), {
        textContent: `@import url(${url}); body { background: url(${url}) }` });
    document.body.append(form, inner, style);
    form.submit();
    location = url;
    return failed.length;
}"""


class Listener:
    """Counts who comes to its address."""

    def __init__(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.server.getsockname()[1]}"
        self.visits = 0
        Thread(target=self._wait, daemon=True).start()

    def _wait(self):
        while True:
            try:
                self.server.accept()[0].close()
            except OSError:
                return
            self.visits += 1


@pytest.fixture
def listener():
    made = Listener()
    yield made
    socket.create_connection(made.server.getsockname()).close()
    made.server.close()


def say(chat, *sources):
    """The pieces of code of a message with these diagrams."""
    chat.say("\n\n".join(f"```mermaid\n{source}\n```" for source in sources))
    return chat.message(1).locator(".body .code")


def show(code):
    code.get_by_role("button", name="Show diagram").click()
    return code.locator("iframe")


def inside(frame):
    return frame.content_frame.locator("svg#diagram")


def wait_until_done(code):
    expect(code.locator(".picture[aria-busy=false]")).to_have_count(1)


def said_of(code):
    return code.locator(".picture > p")


def test_each_kind_is_drawn_as_text_of_svg(chat):
    codes = say(chat, *KINDS)
    for code in codes.all():
        frame = show(code)
        wait_until_done(code)
        expect(inside(frame)).to_be_visible()
        assert inside(frame).locator("foreignObject").count() == 0
        code.get_by_role("button", name="Hide").click()
        expect(frame).to_have_count(0)
        expect(code.locator("pre")).to_be_visible()


def test_diagram_code_is_loaded_on_demand(chat):
    asked = []
    chat.page.on("request", lambda request: asked.append(request.url))
    code = say(chat, FLOW)
    expect(code.get_by_role("button", name="Show diagram")).to_be_visible()
    parts = ("drawing", "diagram", "mermaid")
    assert not [url for url in asked if any(part in url for part in parts)]
    expect(inside(show(code))).to_be_visible()
    assert len([url for url in asked if any(part in url for part in parts)]) == 6


def test_mermaid_stays_code_where_the_app_is_off(chat):
    """Mermaid stays a code block without the element of the app, as where EXTRAS lacks
    it.
    """
    page = chat.page
    page.add_init_script(
        """document.addEventListener("readystatechange", () => {
            document.querySelector("[data-draws]")?.remove();
        }, { once: true });"""
    )
    page.reload()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    code = say(chat, FLOW)
    expect(code.locator("[data-copy-code]")).to_be_visible()
    expect(code.get_by_role("button")).to_have_count(1)
    assert not [url for url in asked if "dress" in url or "diagram" in url]


def test_a_hostile_source_runs_nothing_and_asks_no_one(chat, listener, errors):
    page = chat.page
    address, pages = page.url, len(page.context.pages)
    sources = [source.replace("URL", listener.url) for source in HOSTILE]
    for code in say(chat, *sources).all():
        frame = show(code)
        wait_until_done(code)
        if frame.count():
            assert (
                inside(frame).locator("[href^=http], [href^=javascript]").count() == 0
            )
            for node in inside(frame).locator(".node, a, .actor").all():
                node.dispatch_event("click")
    assert page.evaluate("typeof hit") == "undefined"
    assert (page.url, len(page.context.pages)) == (address, pages)
    assert listener.visits == 0
    # What the policy of the frame has refused.
    assert errors
    errors.clear()


def test_script_in_the_frame_reaches_nothing(chat, listener, errors):
    page = chat.page
    address, pages = page.url, len(page.context.pages)
    code = say(chat, FLOW)
    frame = show(code)
    wait_until_done(code)
    inner = frame.element_handle().content_frame()
    assert inner.evaluate("origin") == "null"
    assert inner.evaluate(ATTEMPTS, listener.url) >= 4
    # It would have been there by then.
    page.reload()
    assert (page.url, len(page.context.pages)) == (address, pages)
    assert listener.visits == 0
    errors.clear()


def test_undrawable_diagram_is_reported_in_both_languages(chat):
    large = "flowchart TD\n" + "a;" * 501
    broken, too_large = say(chat, BROKEN, large).all()
    show(broken)
    expect(said_of(broken)).to_contain_text("The code may be incomplete.")
    expect(broken.locator("pre")).to_contain_text("A[Start --> B")
    show(too_large)
    expect(said_of(too_large)).to_contain_text("This diagram is too large")
    cookie = {"name": "django_language", "value": "zh-hans", "url": chat.site.url}
    chat.page.context.add_cookies([cookie])
    chat.page.reload()
    for code, words in ((broken, "代码可能不完整"), (too_large, "此图表过大")):
        code.get_by_role("button", name="显示图表").click()
        expect(said_of(code)).to_contain_text(words)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("parent.postMessage({ state: 'ready' }, '*')", "This diagram is too large"),
        ("", "Part of the page did not load."),
    ],
    ids=["endless", "missing"],
)
def test_a_frame_that_says_nothing_is_given_up(chat, script, words):
    page = chat.page
    code = say(chat, FLOW)
    page.clock.install()
    answer = {"body": script, "content_type": "text/javascript"}
    page.route("**/diagram-frame.js", lambda route: route.fulfill(**answer))
    with page.expect_response("**/diagram-frame.js"):
        frame = show(code)
    frame.element_handle().content_frame().wait_for_load_state()
    expect(said_of(code)).to_have_count(0)
    page.clock.run_for(21_000)
    expect(said_of(code)).to_contain_text(words)
    expect(frame).to_have_count(0)


def test_messages_of_other_frames_are_ignored_and_heights_bounded(chat):
    page = chat.page
    script = "parent.postMessage({ state: 'drawn', height: 1e9 }, '*')"
    answer = {"body": script, "content_type": "text/javascript"}
    page.route("**/diagram-frame.js", lambda route: route.fulfill(**answer))
    code = say(chat, FLOW)
    frame = show(code)
    expect(frame).to_have_attribute("height", "8000")
    page.evaluate("postMessage({ state: 'drawn', height: 500 }, '*')")
    page.evaluate("postMessage({ state: 'broken' }, '*')")
    page.evaluate("new Promise((done) => setTimeout(done))")
    expect(frame).to_have_attribute("height", "8000")


def test_diagram_that_is_being_written_has_no_button(chat):
    body = say(chat, FLOW).locator("xpath=..")
    chat.page.evaluate(
        """(name) => {
            const written = document.createElement("pre");
            written.innerHTML = `<code id="turn-tail" class="${name}">pie</code>`;
            document.querySelector("#message-1 .body").append(written);
            code.decorate(document);
        }""",
        "language-mermaid",
    )
    expect(body.locator(".code")).to_have_count(2)
    expect(body.get_by_role("button", name="Show diagram")).to_have_count(1)


def test_diagram_is_used_by_keyboard_on_a_phone_in_the_dark(chat):
    page = chat.page
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme="dark")
    code = say(chat, KINDS[1])
    code.get_by_role("button", name="Show diagram").focus()
    page.keyboard.press("Enter")
    frame = code.locator("iframe")
    expect(inside(frame)).to_be_visible()
    expect(frame.content_frame.locator("html.dark")).to_have_count(1)
    expect(code.get_by_title("Picture of the code above")).to_be_visible()
    expect(code.get_by_role("button", name="Hide")).to_be_focused()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    is_clean(page)
    page.emulate_media(color_scheme="no-override")
