"""What the socket pushes to a page, and what it remembers to do so."""

import re

import pytest

from chatsite.chat import events, fragments, turns
from chatsite.chat.models import Turn
from memory import transcript

TURN = 7


def page(text="", attempt=1):
    page = fragments.Page(shown={TURN})
    page.live[TURN] = fragments.Known(attempt, text, len(text))
    return page


def frame(base, tail, attempt=1):
    return events.Frame(TURN, attempt, base, tail)


class Browser:
    """Applies the two spans of a frame like htmx does."""

    def __init__(self, settled=""):
        self.settled, self.tail = settled, ""

    def apply(self, html):
        for part, swap, text in re.findall(
            r'id="turn-7-(\w+)" hx-swap-oob="(\w+)">([^<]*)<', html
        ):
            assert swap in ("beforeend", "innerHTML")
            before = getattr(self, part) if swap == "beforeend" else ""
            setattr(self, part, before + text)

    @property
    def text(self):
        return self.settled + self.tail


@pytest.mark.parametrize("dropped", range(12))
def test_a_browser_puts_the_reply_together_whatever_is_dropped(dropped):
    reply = "The quick 🦊 jumps over the lazy 狗. " * 9
    known, browser, base = page(), Browser(), 0
    for number, end in enumerate(range(30, len(reply) + 30, 30)):
        html = ""
        if number != dropped:
            html = known.frame(frame(base, reply[base:end]))
        if html is None:  # the consumer syncs from the database
            known, browser = page(reply[:base]), Browser(reply[:base])
            html = known.frame(frame(base, reply[base:end]))
        browser.apply(html)
        if number % 3 == 2:
            base = end
    browser.apply(known.frame(frame(base, reply[base:])))
    assert browser.text == reply


def test_text_of_a_model_is_escaped():
    html = page().frame(frame(0, "<script>alert(1)</script>"))
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (frame(50, "tail"), "text was missed"),
        (frame(3, "tail", attempt=2), "the beginning of a new attempt was missed"),
        (events.Frame(99, 1, 0, "x"), "an unknown turn"),
    ],
)
def test_it_asks_for_a_sync_when_it_can_not_go_on(event, why):
    assert page("known").frame(event) is None, why


def test_a_new_attempt_takes_the_place_of_what_the_last_one_had_saved():
    saved = "a long text of the first attempt"
    known, browser = page(saved), Browser(saved)
    for base, tail in ((0, "Once"), (0, "Once upon"), (9, " a time")):
        browser.apply(known.frame(frame(base, tail, attempt=2)))
    assert browser.text == "Once upon a time"


def test_a_frame_of_an_older_attempt_is_ignored():
    known = page("new text", attempt=2)
    assert known.frame(frame(0, "old", attempt=1)) == ""
    assert known.live[TURN].text == "new text"


@pytest.mark.django_db
class TestTurn:
    @pytest.fixture
    def conversation(self, alice):
        return transcript.create(alice)

    def send(self, conversation, text="Hello"):
        return turns.submit(conversation, text=text, client_id=f"id-{text}").turn

    def test_a_new_turn_is_appended_and_a_known_one_replaced(self, conversation):
        turn, known = self.send(conversation), fragments.Page()
        first = known.turn(conversation, turn.pk, "")
        again = known.turn(conversation, turn.pk, "")
        assert 'hx-swap-oob="beforeend:#turns"' in first
        assert again.strip().startswith(f'<section class="turn" id="turn-{turn.pk}"')

    def test_a_sync_shows_everything_and_says_what_is_live(self, conversation):
        turn = self.send(conversation)
        claim = turns.claim(conversation.pk)
        turns.checkpoint(claim, "So far")
        known = fragments.Page()
        html = known.sync(conversation, "Generating")
        assert "So far" in html
        assert "Generating" in html
        assert known.live == {turn.pk: fragments.Known(1, "So far", 6)}

    def test_an_ended_turn_is_not_live_any_more(self, conversation):
        turn, known = self.send(conversation), fragments.Page()
        known.sync(conversation)
        claim = turns.claim(conversation.pk)
        turns.finish(claim, turns.Result(Turn.State.DONE, "**Done**"))
        assert "<strong>Done</strong>" in known.turn(conversation, turn.pk, "")
        assert known.live == {}
