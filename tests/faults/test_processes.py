"""A site's process is killed, asked to end, or frozen while it writes replies; the
other one goes on, or the same one when it is back.
"""

import signal
import time

import pytest

from tests.patience import wait_for, within

from .harness import TAKEOVER, story_text

pytestmark = [pytest.mark.fault, pytest.mark.database("postgresql")]

# Replies of one process at once.
COUNT = 10
STOP_SECONDS = 1.0
EXIT_SECONDS = 10.0


def wait_taken_over(pair, viewers, seconds):
    """Return how long it took until every story was begun again."""
    started = time.monotonic()
    again = [2] * len(viewers)
    wait_for(lambda: pair.truth.attempts(viewers) == again, seconds, "the takeover")
    return time.monotonic() - started


def test_a_killed_process_loses_its_replies_to_the_other(pair, crowd):
    here, _ = pair.sites
    viewers = pair.begin_at(here, crowd, COUNT)
    here.kill()
    wait_taken_over(pair, viewers, TAKEOVER)
    pair.settle_and_check(viewers)
    assert pair.truth.attempts(viewers) == [2] * COUNT


def test_a_process_that_is_asked_to_end_hands_its_replies_on(pair, crowd):
    here, _ = pair.sites
    viewers = pair.begin_at(here, crowd, COUNT)
    with within(EXIT_SECONDS):
        assert here.terminate() == 0
    # The next process need not wait for a lease to end.
    left = [(row.state, row.attempt) for row in pair.truth.unfinished()]
    assert ("running", 1) not in left
    wait_taken_over(pair, viewers, TAKEOVER)
    pair.settle_and_check(viewers)
    assert pair.truth.attempts(viewers) == [2] * COUNT


def test_a_frozen_process_that_wakes_up_writes_nothing(pair, crowd):
    here, _ = pair.sites
    viewers = pair.begin_at(here, crowd, 5)
    asked = len(pair.upstream.calls)
    here.send(signal.SIGSTOP)
    wait_taken_over(pair, viewers, TAKEOVER)
    here.send(signal.SIGCONT)
    pair.settle_and_check(viewers)
    assert pair.truth.attempts(viewers) == [2] * 5
    assert len(pair.upstream.calls) == asked + 5


def test_user_decides_after_two_lost_attempts(pair, crowd):
    here, there = pair.sites
    (viewer,) = pair.begin_at(here, crowd, 1, words=300, paces=(0.1, 0.1, 0.01))
    here.kill()
    wait_taken_over(pair, [viewer], TAKEOVER)
    here.start()
    turn = viewer.acks[viewer.story]["turn"]
    wait_for(lambda: pair.truth.row(turn).text, what="a checkpoint")
    there.kill()
    end = viewer.wait_end(viewer.story, TAKEOVER)
    assert end["state"] == "interrupted"
    assert end["text"]
    pair.settle_and_check([viewer])
    viewer.command(type="retry", turn=end["turn"])
    reply = viewer.reply_to(viewer.story)
    wait_for(lambda: reply.end["state"] == "done", 15, "the retried reply")
    pair.settle_and_check([viewer])


def test_a_reply_is_stopped_from_another_process_at_once(pair, crowd):
    here, there = pair.sites
    (viewer,) = pair.begin_at(here, crowd, 1)
    other = crowd.open([there], viewer.path)
    closed = pair.upstream.closed_early
    with within(STOP_SECONDS):
        other.command(type="stop", turn=viewer.acks[viewer.story]["turn"])
        assert viewer.wait_end(viewer.story)["state"] == "stopped"
    assert pair.upstream.wait_closed_early(closed + 1)
    pair.settle_and_check([viewer])


def test_waiting_messages_keep_their_order_and_can_be_taken_back(pair, crowd):
    here, there = pair.sites
    (viewer,) = pair.begin_at(here, crowd, 1, words=40)
    waiting = [viewer.send(story_text(3, seed=f"q{n}")) for n in range(4)]
    places = [viewer.wait_acked(each)["position"] for each in waiting]
    assert places == [1, 2, 3, 4]
    other = crowd.open([there], viewer.path)
    other.command(type="stop", turn=viewer.acks[waiting[1]]["turn"])
    assert viewer.wait_end(waiting[1])["state"] == "stopped"
    here.kill()
    pair.settle_and_check([viewer])
    asked = [call.messages[-1]["content"] for call in pair.upstream.calls]
    shown = [n for n in range(4) if viewer.texts[waiting[n]] in asked]
    order = [asked.index(viewer.texts[waiting[n]]) for n in shown]
    assert shown == [0, 2, 3]
    assert order == sorted(order)
