"""The load of bench.streaming on this site: it reads every word that was sent."""

import pytest

from bench.streaming.__main__ import cost_of_a_turn, play
from bench.streaming.contestants import Upstream, all_of_them

WORDS = 12


@pytest.mark.server
async def test_people_read_whole_replies_in_both_forms():
    with Upstream(WORDS) as upstream, all_of_them(upstream.url, {"sqlite"}) as found:
        for contestant in found:
            figures = await play(contestant, streams=2, words=WORDS, spread=0.1)
            assert figures.wrong == 0, contestant.name
            assert figures.cpu_per_word > 0
        assert await cost_of_a_turn(found[0], WORDS, turns=1) > 0
