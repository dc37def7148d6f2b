"""Work for any process, over all tables that have it: claimed once, renewed, cancelled,
ended once, handed back, and taken over from a process that died.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import OperationalError, connection
from django.db.models import QuerySet
from django.db.models.functions import Now

from chatsite.contrib.lab.experiments import store as experiments
from chatsite.contrib.lab.experiments.models import Experiment
from chatsite.contrib.lab.trials import store as trials
from chatsite.contrib.lab.trials.models import Trial
from chatsite.jobs import queue
from chatsite.jobs import worker as worker_module
from chatsite.jobs.worker import start_waiting
from chatsite.turns import runner
from chatsite.turns.models import Job
from memory.leases import Claim, LeaseStatus, LostError

from ..scenes import talk_in_turns

pytestmark = pytest.mark.django_db(transaction=True)

# By table: its worker, what a claim writes beside, and how a row ends that was
# cancelled, and one that was given up. A job has its claim from the beginning.
USERS = {
    "experiments": (
        experiments.EXPERIMENTS,
        {"place": 0},
        ("stopped", "cancelled"),
        ("failed", "interrupted"),
    ),
    "jobs": (queue.JOBS, {}, ("cancelled", ""), ("failed", queue.DIED)),
    "trials": (
        trials.TRIALS,
        {},
        ("stopped", ""),
        ("interrupted", "interrupted"),
    ),
}


taken_over = pytest.mark.parametrize("user", ["experiments", "trials"], indirect=True)


@pytest.fixture(params=USERS)
def user(request):
    return request.param


@pytest.fixture
def worker(user):
    return USERS[user][0]


@pytest.fixture
def rows(user, conversation, alice):
    """The one row of the table, which waits."""
    if user == "jobs":
        row = Job.objects.get(pk=queue.add("test", alice, "slot").row_id)
        return QuerySet(Job).filter(pk=row.pk)
    talk_in_turns(conversation, "Hello")
    if user == "trials":
        reply = conversation.messages.get(seq=2)
        row = Trial.objects.create(conversation=conversation, message=reply)
    else:
        values = {"model": "demo", "budget": 100, "last_seq": 2}
        row = Experiment.objects.create(conversation=conversation, **values)
    return QuerySet(type(row)).filter(pk=row.pk)


@pytest.fixture
def claim(user, worker, rows):
    """claim() -> the claim of the row, or None."""
    row, beside = rows.get(), USERS[user][1]
    if user == "jobs":
        mine = Claim(row.pk, row.owner)
        return lambda: mine if queue.begin(mine) else None
    pk = row.pk
    return lambda: worker.claim_row(rows.all(), pk, **beside)


def expire(rows):
    """The process of its owner died some time ago."""
    rows.update(lease_until=Now() - timedelta(seconds=1))


def end_of(rows):
    row = rows.get()
    assert (row.lease_until, getattr(row, "place", None)) == (None, None)
    assert row.finished_at
    return row.state, row.error


class TestClaims:
    @taken_over
    def test_claim_is_an_attempt_that_excludes_others(self, claim, rows):
        mine = claim()
        assert claim() is None
        row = rows.get()
        assert (row.state, row.attempt, row.owner) == ("running", 1, mine.owner)

    def test_concurrent_claims_of_a_row_succeed_once(self, claim):
        barrier = Barrier(4)

        def take(_):
            try:
                barrier.wait()
                return claim()
            finally:
                connection.close()

        with ThreadPoolExecutor(4) as threads:
            assert len([*filter(None, threads.map(take, range(4)))]) == 1

    @taken_over
    def test_dead_owner_writes_nothing_after_a_takeover(self, claim, rows, worker):
        lost = claim()
        expire(rows)
        assert claim()
        before = rows.values().get()
        assert worker.renew_claim(lost) is LeaseStatus.LOST
        assert not worker.finish_row(lost, "done")
        assert rows.values().get() == before
        assert before["attempt"] == 2

    def test_late_owner_finishes_a_row_that_is_not_taken_over(
        self, claim, rows, worker
    ):
        mine = claim()
        expire(rows)
        assert worker.finish_row(mine, "done")
        assert not worker.finish_row(mine, "failed", "internal")
        assert end_of(rows) == ("done", "")


class TestLeftRows:
    @taken_over
    def test_row_is_given_up_after_its_last_attempt(self, user, claim, rows, worker):
        for _ in range(worker.most_attempts()):
            assert claim()
            assert worker.end_left() == []
            expire(rows)
        assert claim() is None
        [ended] = worker.end_left()
        assert ended.pk == rows.get().pk
        assert end_of(rows) == USERS[user][3]
        assert worker.end_left() == []

    def test_cancelled_row_of_a_dead_process_ends(self, user, claim, rows, worker):
        claim()
        worker.cancel_rows(rows)
        expire(rows)
        assert claim() is None
        assert len(worker.end_left()) == 1
        assert end_of(rows) == USERS[user][2]

    def test_job_of_a_dead_process_fails_whether_it_waits_or_runs(self, alice):
        claims = [queue.add("test", alice, slot) for slot in "ab"]
        queue.begin(claims[0])
        expire(QuerySet(Job).all())
        assert queue.end_dead() == 2
        for row in Job.objects.all():
            assert end_of(Job.objects.filter(pk=row.pk)) == ("failed", queue.DIED)

    def test_row_that_is_renewed_meanwhile_does_not_end(
        self, claim, rows, worker, monkeypatch
    ):
        mine = claim()
        if hasattr(rows.get(), "attempt"):
            rows.update(attempt=99)
        expire(rows)
        end = type(worker).end_rows

        def renew_first(self, *args, **values):
            self.lease.renew_row(self.lease.filter_held(mine))
            return end(self, *args, **values)

        monkeypatch.setattr(type(worker), "end_rows", renew_first)
        assert worker.end_left() == []
        assert rows.get().state == "running"


class TestCancelling:
    @taken_over
    def test_waiting_row_ends_at_once(self, user, claim, rows, worker):
        assert worker.cancel_rows(rows) == 1
        assert end_of(rows) == USERS[user][2]
        assert claim() is None

    def test_running_row_is_ended_by_its_owner(self, claim, rows, worker):
        mine = claim()
        assert worker.cancel_rows(rows) == 0
        assert worker.renew_claim(mine) is LeaseStatus.CANCELLED
        assert worker.finish_row(mine, "stopped")

    def test_ended_row_stays_as_it_is(self, claim, rows, worker):
        worker.finish_row(claim(), "done")
        before = rows.values().get()
        assert worker.cancel_rows(rows) == 0
        assert rows.values().get() == before


@taken_over
class TestRelease:
    def test_released_row_waits_and_has_lost_no_attempt(self, claim, rows, worker):
        mine = claim()
        worker.release_rows()
        row = rows.get()
        assert (row.state, row.attempt, row.owner) == ("queued", 0, "")
        assert getattr(row, "place", None) is None
        assert not worker.finish_row(mine, "done")
        assert claim()

    def test_row_of_another_process_is_not_released(self, claim, rows, worker):
        claim()
        rows.update(owner="another")
        worker.release_rows()
        assert rows.get().state == "running"


class TestHolding:
    @pytest.fixture(autouse=True)
    def often(self, monkeypatch):
        monkeypatch.setattr(worker_module, "RENEW_SECONDS", 0.02)

    def hold(self, worker, mine, rows, change, cancel=lambda: None):
        """Work during which the change happens, until its lease is renewed after it."""

        async def work():
            await sync_to_async(change)()
            await sync_to_async(expire)(rows)
            while not await rows.filter(worker.lease.match_alive()).aexists():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            return "done"

        return async_to_sync(worker.work_under_claim)(mine, work(), cancel)

    def test_lease_is_renewed_while_the_work_lasts(self, claim, rows, worker):
        assert self.hold(worker, claim(), rows, lambda: None) == "done"

    def test_cancelled_work_ends_where_it_may(self, claim, rows, worker):
        def cancel():
            raise KeyError("stop")

        with pytest.raises(KeyError, match="stop"):
            self.hold(worker, claim(), rows, lambda: worker.cancel_rows(rows), cancel)

    def test_cancelled_work_that_goes_on_is_renewed(self, claim, rows, worker):
        cancelled = []
        change = lambda: worker.cancel_rows(rows)  # noqa: E731
        found = self.hold(worker, claim(), rows, change, lambda: cancelled.append(1))
        assert (found, bool(cancelled)) == ("done", True)

    def test_lost_row_ends_the_work(self, claim, rows, worker):
        with pytest.raises(LostError):
            self.hold(worker, claim(), rows, lambda: rows.update(owner="another"))


class TestEnds:
    """Work ends in the right state, whatever happens."""

    @pytest.fixture
    def run(self, claim, worker):
        """run(work) -> what comes of it."""

        def do(work, finish=None):
            mine = claim()
            crashed = mine, "failed", "internal"
            end = finish or worker.finish_row
            return async_to_sync(runner.work_to_end)(
                "work", mine, work(mine), end, crashed
            )

        return do

    def test_crash_is_an_end(self, run, rows):
        async def crash(mine):
            raise ZeroDivisionError

        assert run(crash)[1]
        assert end_of(rows) == ("failed", "internal")

    @pytest.mark.parametrize("error", [LostError, OperationalError])
    def test_lost_and_left_rows_are_for_others(self, run, rows, error):
        async def fail(mine):
            raise error

        assert run(fail) is None
        assert rows.get().state == "running"

    def test_end_is_written_once_the_database_is_back(self, run, rows, worker):
        tries = []

        def finish(*end):
            tries.append(end)
            if len(tries) < 3:
                raise OperationalError
            return worker.finish_row(*end)

        async def work(mine):
            return mine, "done"

        assert run(work, finish)[1]
        assert end_of(rows) == ("done", "")

    async def test_process_that_ends_claims_one_more_at_most(self, monkeypatch):
        monkeypatch.setattr(runner, "_closing", asyncio.Event())
        runner._closing.set()
        claims = []

        async def run(claim):
            raise AssertionError

        def claim_next():
            claims.append(Claim(1, "mine"))
            return claims[-1]

        await start_waiting(claim_next, run)
        assert len(claims) == 1
