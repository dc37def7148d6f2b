"""Redis only carries hints: without it replies are complete, and screens are late."""

import signal

import pytest

from tests.patience import wait_for, within

from .harness import CATCH_UP, story_text

pytestmark = [pytest.mark.fault, pytest.mark.database("postgresql")]

# A checkpoint looks for the wish to stop every second.
STOP_WITHOUT_HINT = 2.5
# How long the site leaves a layer alone that has failed.
LAYER_PAUSE = 5.0


def streams_again(crowd, pair):
    """Return whether frames travel from one process to a screen at the other."""
    here, there = pair.sites
    path = pair.create()
    screen, sender = crowd.open([here], path), crowd.open([there], path)
    client_id = sender.send(story_text(40, [0.02]))
    turn = sender.wait_acked(client_id)["turn"]
    wait_for(lambda: turn in screen.replies and screen.replies[turn].end, 10, "end")
    return screen.replies[turn].frames > 5


def test_replies_are_complete_while_redis_is_stopped(pair, crowd):
    viewers = pair.begin_stories(crowd, 6, words=40)
    pair.redis.terminate()
    waiting = [viewer.send(story_text(20)) for viewer in viewers]
    pair.settle_and_check(viewers)
    assert len(waiting) == 6
    pair.redis.start()
    wait_for(lambda: streams_again(crowd, pair), CATCH_UP, "frames over Redis")


def test_a_restart_of_redis_is_hardly_seen(pair, crowd):
    viewers = pair.begin_stories(crowd, 6, words=50)
    pair.redis.restart()
    pair.settle_and_check(viewers)
    wait_for(lambda: streams_again(crowd, pair), CATCH_UP, "frames over Redis")


def test_a_frozen_redis_holds_nothing_up(pair, crowd):
    viewers = pair.begin_stories(crowd, 6, words=40)
    pair.redis.send(signal.SIGSTOP)
    with within(LAYER_PAUSE):
        late = crowd.open(pair.sites, viewers[0].path)
        late.wait_acked(late.send(story_text(5)))
    pair.settle_and_check([*viewers, late])
    pair.redis.send(signal.SIGCONT)
    assert pair.truth.attempts(viewers) == [1] * 6


def test_stop_without_redis_waits_for_a_checkpoint(pair, crowd):
    here, there = pair.sites
    (viewer,) = pair.begin_stories(crowd, 1, sites=[here])
    other = crowd.open([there], viewer.path)
    pair.redis.terminate()
    closed = pair.upstream.closed_early
    turn = viewer.acks[viewer.story]["turn"]
    other.command(type="stop", turn=turn)
    wait_for(lambda: pair.truth.row(turn).state == "stopped", STOP_WITHOUT_HINT, "stop")
    assert pair.upstream.wait_closed_early(closed + 1)
    pair.settle_and_check([viewer])
