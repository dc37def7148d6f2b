"""The demo conversation as it is here, and the same words in other chats' layouts.

Width, size and distances are as docs/design.md gives them. Letters and colours are ours
everywhere; what is unknown of the others is left out.
"""

import base64
import sys
from dataclasses import dataclass
from pathlib import Path
from string import Template

from playwright.sync_api import Page, expect

from tests.browser.test_looks import OBJECTS

from .camera import Camera
from .pictures_page import PERSON

FONT = Path(__file__).resolve().parent.parent / "vendor/inter/inter-latin.woff2"
SIZE = {"width": 1000, "height": 900}
# Wide enough for a left pane of the others' width.
OURS = (1700, 900)
MESSAGES = """() => [...document.querySelectorAll("#turns .message")].map(
    (message) => [message.classList.contains("user"),
        message.querySelector(".body").innerHTML])"""
ONE_LINE = [(True, "<p>And the next?</p>"), (False, "<p>The next is this one.</p>")]
EXCHANGES = 10

PAGE = Template("""<!doctype html><meta charset="utf-8"><style>
    @font-face { font-family: Inter; src: url("data:font/woff2;base64,$font");
        font-weight: 100 900; }
    body { margin: 0; font: 16px/24px Inter; color: #222; background: #fff; }
    p, ul, ol { margin: 0; } p + *, ul + *, ol + * { margin-top: 20px; }
    #transcript { height: 100vh; overflow: hidden; }
    .column { box-sizing: border-box; margin: 0 auto; }
    .user .body { width: fit-content; margin-left: auto; background: #f0f0f0; }
    .sign { display: inline-block; background: currentColor; border: 0; padding: 0;
        border-radius: 4px; opacity: 0.25; }
    .row { display: flex; align-items: center; } .user .row { justify-content: end; }
    .is-hidden { visibility: hidden; }
    $css
</style><div id="transcript"><div class="column">$messages</div></div>""")


@dataclass(frozen=True)
class Layout:
    """A page's layout: its styles, and the signs below messages and replies.

    `asked` and `answered` count them; they are always there or for the latest reply
    alone.
    """

    css: str
    asked: int
    answered: int
    is_always: bool = False
    # What stands above a reply.
    head: str = ""

    def draw(self, messages: list[tuple[bool, str]]) -> str:
        last = len(messages) - 1
        parts = [self._draw_one(*each, i == last) for i, each in enumerate(messages)]
        font = base64.b64encode(FONT.read_bytes()).decode()
        return PAGE.substitute(font=font, css=self.css, messages="".join(parts))

    def _draw_one(self, is_user: bool, body: str, is_last: bool) -> str:
        signs = self.asked if is_user else self.answered
        seen = not is_user and (self.is_always or is_last)
        row = '<button class="sign"></button>' * signs
        kind, head = ("user", "") if is_user else ("reply", self.head)
        hidden = "" if seen else " is-hidden"
        return (
            f'<div class="{kind}">{head}<div class="body">{body}</div>'
            f'<div class="row{hidden}">{row}</div></div>'
        )


LAYOUTS = {
    "open-webui": Layout(
        """
        .column { max-width: 1024px; padding: 0 20px; }
        .user .body { max-width: 90%; padding: 8px 20px; border-radius: 24px; }
        .user .body, .reply .body { line-height: 28px; } .user { padding-bottom: 4px; }
        .row { min-height: 28px; } .sign { width: 16px; height: 16px; margin: 6px; }
        .reply { padding-left: 44px; position: relative; }
        .mark { position: absolute; left: 0; top: 0; width: 32px; height: 32px;
            border-radius: 50%; background: #ddd; }
        .who { font-weight: 600; }
        """,
        asked=2,
        answered=6,
        head='<span class="mark"></span><div class="who">demo</div>',
    ),
    "chatgpt": Layout(
        """
        .column { max-width: 768px; }
        .user { padding-top: 48px; } .reply .body { line-height: 28px; }
        .user .body { max-width: 70%; padding: 6px 16px; border-radius: 18px; }
        .user .body:has(p + *) { padding: 12px 16px; }
        .sign { width: 20px; height: 20px; margin: 6px; }
        .user .row { height: 40px; } .reply .row { min-height: 46px; }
        """,
        asked=2,
        answered=5,
    ),
    "claude": Layout(
        """
        .column { max-width: 768px; padding: 0 24px; }
        .user { margin: 24px 0 4px; } .reply { padding-bottom: 12px; }
        .user .body { max-width: 85%; padding: 12px 16px; border-radius: 12px;
            line-height: 22.4px; }
        .reply .body { line-height: 27.2px; padding: 0 32px 0 8px; }
        .reply .body p + * { margin-top: 12px; }
        .sign { width: 20px; height: 20px; margin: 6px; }
        """,
        asked=0,
        answered=4,
        is_always=True,
    ),
}


def take_all(camera: Camera) -> None:
    with camera.visit(PERSON, size=OURS) as page:
        newest = page.locator("#conversation-list a[href^='/c/']").first
        page.goto(f"{camera.site.url}{newest.get_attribute('href')}")
        expect(page.locator("#connection")).to_have_attribute("data-state", "open")
        page.wait_for_load_state("networkidle")
        messages = page.evaluate(MESSAGES)
        _say("here", page.evaluate(OBJECTS), "")
        camera.take(page, "layout-here", part="#you-see")
        for name, layout in LAYOUTS.items():
            _draw(camera, name, layout, messages)


def _draw(
    camera: Camera, name: str, layout: Layout, messages: list[tuple[bool, str]]
) -> None:
    page = camera.browser.new_page(viewport=SIZE)
    _show(page, layout.draw(messages))
    page.evaluate("document.getElementById('transcript').scrollTop = 1e6")
    objects = page.evaluate(OBJECTS)
    camera.take(page, f"layout-{name}")
    _show(page, layout.draw(ONE_LINE * EXCHANGES))
    height = page.locator(".column").evaluate("(column) => column.offsetHeight")
    _say(name, objects, f"ten exchanges {height} px")
    page.close()


def _show(page: Page, html: str) -> None:
    page.set_content(html)
    page.evaluate("() => document.fonts.load('16px Inter')")


def _say(name: str, objects: int, more: str) -> None:
    sys.stdout.write(f"{name}: {objects} objects {more}\n")
