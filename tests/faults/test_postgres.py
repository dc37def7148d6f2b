"""PostgreSQL goes away in the middle of replies, for a moment or for longer."""

import time

import psycopg
import pytest

from .harness import LEASE, story_text

# What the site sets for its own connections.
PATIENCE = "-c idle_in_transaction_session_timeout=5s"
LOCK = """
    SELECT c.id FROM memory_conversation c JOIN chat_turn t ON t.conversation_id = c.id
    WHERE t.id = %s FOR UPDATE OF c
"""

pytestmark = [pytest.mark.fault, pytest.mark.database("postgresql")]


def test_cut_connections_are_replaced_unnoticed(pair, crowd):
    viewers = pair.begin_stories(crowd, 6, words=50)
    for _ in range(4):
        assert pair.cut_connections() > 0
        time.sleep(0.7)
    waiting = [viewer.send(story_text(5)) for viewer in viewers]
    pair.settle_and_check(viewers)
    assert len(waiting) == 6
    assert pair.truth.attempts(viewers) == [1] * 6


def test_replies_outlive_a_crash_and_restart(pair, crowd):
    viewers = pair.begin_stories(crowd, 6)
    waiting = [viewer.send(story_text(5)) for viewer in viewers[:3]]
    pair.postgres.crash()
    pair.postgres.restart()
    pair.settle_and_check(viewers)
    assert len(waiting) == 3
    assert max(pair.truth.attempts(viewers)) <= 2


def test_message_sent_without_a_database_arrives_once(pair, crowd):
    viewers = pair.begin_stories(crowd, 3, words=80)
    pair.postgres.terminate()
    waiting = [viewer.send(story_text(5)) for viewer in viewers]
    closed = pair.upstream.closed_early
    # Longer than a lease: the process that holds a turn loses it.
    assert pair.upstream.wait_closed_early(closed + 3, LEASE + 2)
    pair.postgres.start()
    pair.settle_and_check(viewers)
    assert pair.truth.attempts(viewers) == [2] * 3
    assert len(waiting) == 3


def test_frozen_transaction_blocks_the_others_for_a_moment(pair, crowd):
    viewers = pair.begin_stories(crowd, 5)
    turn = viewers[0].acks[viewers[0].story]["turn"]
    with psycopg.connect(pair.url, options=PATIENCE) as frozen:
        frozen.execute(LOCK, [turn])
        waiting = viewers[0].send(story_text(5))
        viewers[0].wait_acked(waiting)
        with pytest.raises(psycopg.errors.IdleInTransactionSessionTimeout):
            frozen.execute("SELECT 1")
    pair.settle_and_check(viewers)
    assert pair.truth.attempts(viewers[1:]) == [1] * 4
