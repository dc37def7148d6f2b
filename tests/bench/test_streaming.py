"""The load of bench.streaming on this site: it reads every word that was sent."""

import pytest

from bench.streaming import upstream
from bench.streaming.__main__ import cost_of_a_turn, play
from bench.streaming.clients import HtmlPerson, Seat
from bench.streaming.contestants import Upstream, all_of_them

WORDS = 12


@pytest.mark.server
async def test_people_read_whole_replies_in_both_forms():
    with Upstream(WORDS) as upstream, all_of_them(upstream.url, {"sqlite"}) as found:
        for contestant in found:
            figures = await play(contestant, streams=2, words=WORDS, spread=0.1)
            assert figures.wrong == 0, contestant.name
            assert figures.cpu_per_word > 0
        turn, idle = await cost_of_a_turn(found[0], WORDS, turns=1)
        assert turn > idle > 0


class Page(HtmlPerson):
    """A page to which these messages come."""

    async def send(self):
        start = round(upstream.clock() * 1000) + 1
        text = upstream.whole_text(start, self.words)
        self.digest = start + 10**9
        self.messages = [f'<p data-state="done" id="{self.digest}">{text}</p>{text}']
        self.socket = self

    async def recv(self):
        return self.messages.pop(0)


async def test_a_reply_that_comes_at_once_and_twice_is_read_once():
    reading = await Page(Seat(""), WORDS).ask()
    assert reading.is_whole
    assert len(reading.late) == WORDS
