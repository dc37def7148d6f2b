"""Many replies saved by one statement, and none of them at the cost of another."""

import asyncio
import threading

import pytest
from django.db import DataError, OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext

from chatsite.turns import checkpoints, commands, lifecycle
from chatsite.turns.lifecycle import LeaseStatus
from chatsite.turns.models import Turn
from memory import context, transcript

MANY = 5


@pytest.fixture
def running(alice, bob):
    """Claims of replies that are being written, some with a recorded request."""
    claims = []
    for number in range(MANY):
        conversation = transcript.create_conversation((alice, bob)[number % 2])
        message = commands.submit_message(
            conversation, text="Hello", client_id="c"
        ).message
        claim = lifecycle.claim(conversation.pk)
        if number:
            built = context.build_request_context(conversation, newest=message)
            claim = lifecycle.begin(claim, built, "m")
        claims.append(claim)
    return claims


def rows_of(claims):
    rows = Turn.objects.in_bulk([claim.row_id for claim in claims])
    return [rows[claim.row_id] for claim in claims]


@pytest.mark.django_db
class TestStatement:
    def test_statement_saves_each_text_in_its_row(self, running):
        before = [row.lease_until for row in rows_of(running)]
        texts = {claim: f"Reply {n}" for n, claim in enumerate(running)}
        with CaptureQueriesContext(connection) as asked:
            assert lifecycle.checkpoint_all(texts)
        updates = [q for q in asked if q["sql"].startswith("UPDATE")]
        assert len(updates) == 1
        after = rows_of(running)
        assert [row.text for row in after] == [*texts.values()]
        assert [row.call_id for row in after] == [claim.call_id for claim in running]
        assert [row.text_attempt for row in after] == [1] * MANY
        assert all(a.lease_until > b for a, b in zip(after, before, strict=True))

    def test_empty_text_renews_only_the_lease(self, running):
        lifecycle.checkpoint(running[1], "Once upon")
        texts = {running[0]: "", running[1]: "", running[2]: "A time"}
        assert lifecycle.checkpoint_all(texts)
        assert [row.text for row in rows_of(running[:3])] == ["", "Once upon", "A time"]
        assert rows_of(running)[0].text_attempt == 0

    def test_result_is_false_when_a_turn_was_stopped_or_lost(self, running):
        texts = dict.fromkeys(running, "So far")
        stopped = rows_of(running)[1]
        commands.stop_turn(stopped.conversation, stopped.pk)
        assert not lifecycle.checkpoint_all(texts)
        Turn.objects.filter(pk=running[2].row_id).update(owner="another")
        assert not lifecycle.checkpoint_all(texts)
        assert [row.text for row in rows_of(running)] == [
            *("So far", "", "So far", "So far", "So far")
        ]


@pytest.mark.database("postgresql")
@pytest.mark.django_db(transaction=True)
def test_a_locked_row_is_not_waited_for(running):
    locked, done = threading.Event(), threading.Event()

    def hold():
        with transaction.atomic():
            Turn.objects.select_for_update().get(pk=running[0].row_id)
            locked.set()
            done.wait(20)
        connection.close()

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert locked.wait(20)
        assert not lifecycle.checkpoint_all(dict.fromkeys(running, "So far"))
    finally:
        done.set()
        thread.join()
    assert [row.text for row in rows_of(running)] == ["", *["So far"] * (MANY - 1)]


class Saved:
    """A replacement of both statements that records which were executed."""

    def __init__(self, monkeypatch, all_at_once=True, one=LeaseStatus.KEPT):
        self.all_at_once, self.one, self.asked = all_at_once, one, []
        monkeypatch.setattr(lifecycle, "checkpoint_all", self.checkpoint_all)
        monkeypatch.setattr(lifecycle, "checkpoint", self.checkpoint)

    def checkpoint_all(self, texts):
        self.asked.append([*texts.values()])
        if isinstance(self.all_at_once, Exception):
            raise self.all_at_once
        return self.all_at_once

    def checkpoint(self, claim, text):
        self.asked.append(text)
        answer = self.one(text) if callable(self.one) else self.one
        if isinstance(answer, Exception):
            raise answer
        return answer


def a_claim(number):
    return lifecycle.TurnClaim(number, f"owner {number}", number, 1)


async def save(*texts):
    work = (
        checkpoints.save_checkpoint(a_claim(n), text) for n, text in enumerate(texts)
    )
    return await asyncio.gather(*work, return_exceptions=True)


def test_next_checkpoint_is_less_than_a_second_away(monkeypatch):
    for now in (0.0, 0.3, 0.45, 0.89, 0.9, 1.0, 12_345.678):
        monkeypatch.setattr(checkpoints, "monotonic", lambda now=now: now)
        for is_first in (True, False):
            left = checkpoints.next_at(is_first=is_first) - now
            # What is left of the second is the statement's.
            assert 0 < left + checkpoints.GATHER_SECONDS < 0.95


@pytest.mark.django_db(transaction=True)
class TestGathering:
    async def test_checkpoints_due_together_are_saved_together(self, monkeypatch):
        saved = Saved(monkeypatch)
        assert await save("a", "b", "c") == [LeaseStatus.KEPT] * 3
        assert await save("d") == [LeaseStatus.KEPT]
        assert saved.asked == [["a", "b", "c"], "d"]

    async def test_refused_checkpoint_does_not_affect_the_others(self, monkeypatch):
        refused, lost = DataError("no such character"), LeaseStatus.LOST
        answers = {"a": LeaseStatus.KEPT, "b": refused, "c": lost}
        saved = Saved(monkeypatch, DataError("no such character"), answers.get)
        assert await save("a", "b", "c") == [*answers.values()]
        saved.all_at_once = False
        assert await save("a", "b", "c") == [*answers.values()]

    async def test_a_database_that_is_away_is_asked_once(self, monkeypatch):
        away = OperationalError("the server closed the connection")
        saved = Saved(monkeypatch, away)
        assert await save("a", "b", "c") == [away] * 3
        assert saved.asked == [["a", "b", "c"]]
        saved = Saved(monkeypatch, False, away)
        assert await save("a", "b", "c") == [away] * 3
        assert saved.asked == [["a", "b", "c"], "a"]

    async def test_a_reply_that_has_ended_is_not_saved(self, monkeypatch):
        saved = Saved(monkeypatch)
        ended = asyncio.create_task(checkpoints.save_checkpoint(a_claim(1), "ended"))
        going = asyncio.create_task(checkpoints.save_checkpoint(a_claim(2), "going"))
        await asyncio.sleep(0)
        ended.cancel()
        assert await going is LeaseStatus.KEPT
        assert saved.asked == ["going"]


class TestTimes:
    @pytest.mark.parametrize(
        ("now", "first", "later"), [(6.4, 7.2, 7.2), (6.7, 7.2, 7.2), (7.0, 7.9, 7.2)]
    )
    def test_replies_save_at_the_same_moment(self, monkeypatch, now, first, later):
        monkeypatch.setattr(checkpoints, "monotonic", lambda: now)
        assert checkpoints.next_at(is_first=True) == pytest.approx(first)
        assert checkpoints.next_at() == pytest.approx(later)
