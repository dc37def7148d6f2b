"""Fragments that the socket pushes to a page, and its memory of them."""

import re
from html import unescape

import pytest

from chatsite.live import fragments
from chatsite.live.live_reply import LiveReply
from chatsite.pages import incremental
from chatsite.pages.markdown import render_markdown, render_part
from chatsite.protocol import events
from chatsite.turns import commands, lifecycle
from chatsite.turns.models import Turn
from memory import transcript

TURN = 7
REPLY = """# The quick 🦊

It *jumps* over the lazy 狗 & <b>.

```python
def jump(fox):

    return fox
```

| fox | dog |
|---|---|
| 1 | 2 |

- and again
- and again

The end."""


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Leave no work to a thread: the effects of a frame are in that frame."""

    class Here:
        def submit(self, act, *args):
            act(*args)

    monkeypatch.setattr(incremental, "_pool", Here())
    monkeypatch.setattr(
        incremental.IncrementalRenderer,
        "view_reply",
        settle_first(incremental.IncrementalRenderer.view_reply),
    )
    incremental._place_of.cache_clear()


def settle_first(view):
    def settled(self, text):
        view(self, text)
        return view(self, text)

    return settled


def page(text="", attempt=1):
    page = fragments.LivePage(shown={TURN})
    view = incremental.view_of(TURN, attempt, text)
    page.live[TURN] = LiveReply(TURN, attempt, text, view)
    return page


def frame(base, tail, attempt=1):
    return events.Frame(TURN, attempt, base, tail)


class Browser:
    """Applies fragments like htmx does; `html` is the body, without what is open."""

    def __init__(self, page):
        view = page.live[TURN].view
        self.html, self.tail, self.letters = str(view.join_html()), view.tail, 0

    def apply(self, fragments):
        found = re.split(r'<\w+ (?:id="turn-7-(\w+)" )?hx-swap-oob="', fragments)[1:]
        for part, rest in zip(found[::2], found[1::2], strict=True):
            swap, inner = rest.split('">', 1)
            getattr(self, f"_{part or 'blocks'}")(swap, inner.rpartition("<")[0])

    def _body(self, swap, inner):
        assert swap == "innerHTML"
        self.html, inner = re.split('<div class="open" id="turn-7-open">', inner)
        self._open(swap, inner)

    def _blocks(self, swap, inner):
        assert swap == "beforebegin:#turn-7-open"
        self.html += inner

    def _open(self, swap, inner):
        found = re.search(r'id="turn-7-tail"[^>]*>([^<]*)<', inner)
        self.tail = unescape(found[1]) if found else ""

    def _tail(self, swap, inner):
        assert swap == "beforeend"
        self.letters += 1
        self.tail += unescape(inner)


@pytest.mark.parametrize("dropped", range(12))
def test_a_browser_puts_the_reply_together_whatever_is_dropped(dropped):
    known, base = page(), 0
    browser = Browser(known)
    for number, end in enumerate(range(9, len(REPLY), 9)):
        html = ""
        if number != dropped:
            html = known.draw_frame(frame(base, REPLY[base:end]))
        if html is None:  # the consumer syncs from the database
            known = page(REPLY[:base])
            browser = Browser(known)
            html = known.draw_frame(frame(base, REPLY[base:end]))
        browser.apply(html)
        if number % 3 == 2:
            base = end
    browser.apply(known.draw_frame(frame(base, REPLY[base:])))
    assert browser.letters > 3
    assert browser.html + render_part(browser.tail, {}) == render_markdown(REPLY)


def test_text_of_a_model_is_escaped():
    html = page().draw_frame(frame(0, "<script>alert(1)</script>"))
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_pages_of_a_process_share_formatted_blocks(monkeypatch):
    formatted, render_part = [], incremental.markdown.render_part
    monkeypatch.setattr(
        incremental.markdown,
        "render_part",
        lambda text, links: formatted.append(text) or render_part(text, links),
    )
    pages = [page() for _ in range(5)]
    browsers = [Browser(each) for each in pages]
    for end in range(9, len(REPLY), 9):
        for known, browser in zip(pages, browsers, strict=True):
            browser.apply(known.draw_frame(frame(0, REPLY[:end])))
    assert "".join(formatted) == REPLY[: REPLY.index("- and again")]
    assert len({browser.html for browser in browsers}) == 1


def test_open_code_is_shown_as_code():
    known = page()
    html = known.draw_frame(frame(0, "Look:\n```python\nprint(1)\n``"))
    assert "<p>Look:</p>" in html
    assert 'class="language-python">print(1)\n</code>' in html
    html = known.draw_frame(frame(0, "Look:\n```python\nprint(1)\n```\n\nSo"))
    assert "print(1)\n</code></pre>" in html
    assert 'tail">So</div>' in html


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (frame(50, "tail"), "text was missed"),
        (frame(3, "tail", attempt=2), "the beginning of a new attempt was missed"),
        (events.Frame(99, 1, 0, "x"), "an unknown turn"),
    ],
)
def test_page_asks_for_a_sync_when_a_frame_does_not_follow(event, why):
    assert page("known").draw_frame(event) is None, why


def test_a_new_attempt_takes_the_place_of_what_the_last_one_had_saved():
    known = page("a long text\n\nof the first\n\nattempt")
    browser = Browser(known)
    assert "<p>a long text</p>" in browser.html
    for base, tail in ((0, "Once"), (0, "Once upon"), (9, " a time")):
        browser.apply(known.draw_frame(frame(base, tail, attempt=2)))
    assert (browser.html, browser.tail) == ("", "Once upon a time")


def test_a_regenerated_reply_is_not_taken_for_the_one_before():
    page("One block.\n\nAnd more.")
    known = page()
    browser = Browser(known)
    browser.apply(known.draw_frame(frame(0, "Another.\n\nAnd\n")))
    assert (browser.html, browser.tail) == ("<p>Another.</p>\n", "And")


def test_a_frame_of_an_older_attempt_is_ignored():
    known = page("new text", attempt=2)
    assert known.draw_frame(frame(0, "old", attempt=1)) == ""
    assert known.live[TURN].text == "new text"


@pytest.mark.django_db
class TestTurn:
    @pytest.fixture
    def conversation(self, alice):
        return transcript.create_conversation(alice)

    def send(self, conversation, text="Hello"):
        return commands.submit_message(
            conversation, text=text, client_id=f"id-{text}"
        ).turn

    def test_a_new_turn_is_appended_and_a_known_one_replaced(self, conversation):
        turn, known = self.send(conversation), fragments.LivePage()
        first = known.draw_turn(conversation.pk, turn.pk, "")
        again = known.draw_turn(conversation.pk, turn.pk, "")
        assert 'hx-swap-oob="beforeend:#turns"' in first
        assert again.split()[0] == "<section"
        assert f'id="turn-{turn.pk}"' in again.split(">", 1)[0]

    def test_a_sync_shows_everything_and_says_what_is_live(self, conversation):
        turn = self.send(conversation)
        claim = lifecycle.claim(conversation.pk)
        lifecycle.checkpoint(claim, "So far")
        known = fragments.LivePage()
        html = "".join(known.sync(conversation, "Generating"))
        assert "So far" in html
        assert "Generating" in html
        live = known.live[turn.pk]
        assert (live.attempt, live.text, live.view.tail) == (1, "So far", "So far")

    def test_an_ended_turn_is_not_live_any_more(self, conversation):
        turn, known = self.send(conversation), fragments.LivePage()
        list(known.sync(conversation))
        claim = lifecycle.claim(conversation.pk)
        lifecycle.finish(claim, lifecycle.TurnResult(Turn.State.DONE, "**Done**"))
        assert "<strong>Done</strong>" in known.draw_turn(conversation.pk, turn.pk, "")
        assert known.live == {}
