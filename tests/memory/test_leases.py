"""Leases of rows: claims, renewals, fences."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from django.db import OperationalError, connection
from django.db.models import F, Q
from django.db.models.functions import Now

from chatsite.turns.models import Turn
from memory import transcript
from memory.leases import (
    PROCESS,
    Claim,
    Lease,
    LeaseStatus,
    LostError,
    new_owner,
    work_under_lease,
)
from memory.models import Conversation

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)
# A table whose states say who waits, and one that has nothing but the two columns.
BY_STATE = Lease(
    Turn, lambda: MINUTE, owned=Q(state="running"), waiting=Q(state="queued")
)
BY_COLUMNS = Lease(
    Conversation, lambda: MINUTE, "compaction_lease_until", "compaction_owner"
)


@pytest.fixture
def conversations(alice):
    row = transcript.create_conversation(alice)
    return Conversation.objects.filter(pk=row.pk)


@pytest.fixture
def turns(conversations):
    row = conversations.get()
    message, _is_new = transcript.append_user_message(row, text="Hi", client_id="a")
    turn = Turn.objects.create(conversation=row, user_message=message, reply_seq=2)
    return Turn.objects.filter(pk=turn.pk)


@pytest.fixture(params=["state", "columns"])
def kind(request):
    """A lease, the row it is about, and what a claim writes beside."""
    if request.param == "columns":
        return BY_COLUMNS, request.getfixturevalue("conversations"), {}
    return BY_STATE, request.getfixturevalue("turns"), {"state": "running"}


def expire(lease, rows):
    rows.update(**{lease.until: Now() - timedelta(seconds=1)})


def held(lease, rows, owner):
    return lease.filter_held(Claim(rows.get().pk, owner))


class TestClaim:
    def test_claim_succeeds_for_one_of_two_owners(self, kind):
        lease, rows, values = kind
        assert rows.filter(lease.match_free()).exists()
        assert lease.claim_row(rows, "one", **values)
        assert not lease.claim_row(rows, "two", **values)
        assert held(lease, rows, "one").exists()
        assert not held(lease, rows, "two").exists()
        assert rows.filter(lease.match_alive()).exists()
        assert not rows.filter(lease.match_free() | lease.match_expired()).exists()

    def test_lease_lasts_from_now_on_by_the_clock_of_the_database(self, kind):
        lease, rows, values = kind
        lease.claim_row(rows, "one", **values)
        lasts = Q((f"{lease.until}__gt", Now() + MINUTE - timedelta(seconds=30)))
        assert rows.filter(lasts, **{f"{lease.until}__lte": Now() + MINUTE}).exists()

    def test_claim_is_one_statement(self, kind, django_assert_num_queries):
        lease, rows, values = kind
        with django_assert_num_queries(1):
            lease.claim_row(rows, "one", **values)

    def test_extra_values_are_written_by_the_winner_alone(self, turns):
        values = {"state": "running", "attempt": F("attempt") + 1}
        for owner in ("one", "two"):
            BY_STATE.claim_row(turns, owner, **values)
        assert turns.get().attempt == 1

    def test_a_row_that_has_ended_is_not_free(self, turns):
        turns.update(state="done")
        assert not BY_STATE.claim_row(turns, "one", state="running")

    @pytest.mark.django_db(transaction=True)
    def test_claim_succeeds_for_one_of_many_concurrent_owners(self, kind):
        lease, rows, values = kind
        barrier = Barrier(4)

        def claim(number):
            try:
                barrier.wait()
                return lease.claim_row(rows.all(), f"owner {number}", **values)
            finally:
                connection.close()

        with ThreadPoolExecutor(4) as threads:
            assert sorted(threads.map(claim, range(4))) == [False] * 3 + [True]


class TestExpiry:
    def test_an_expired_lease_is_free_for_the_next_one(self, kind):
        lease, rows, values = kind
        lease.claim_row(rows, "one", **values)
        expire(lease, rows)
        assert rows.filter(lease.match_expired()).exists()
        assert not rows.filter(lease.match_alive()).exists()
        assert lease.claim_row(rows, "two", **values)
        assert not held(lease, rows, "one").exists()

    def test_a_late_owner_keeps_what_no_other_owner_has_claimed(self, kind):
        lease, rows, values = kind
        lease.claim_row(rows, "one", **values)
        expire(lease, rows)
        assert lease.renew_row(held(lease, rows, "one"))
        assert not lease.claim_row(rows, "two", **values)


class TestRenewal:
    def test_a_renewed_lease_does_not_end(self, kind):
        lease, rows, values = kind
        lease.claim_row(rows, "one", **values)
        rows.update(**{lease.until: Now() + timedelta(seconds=1)})
        assert lease.renew_row(held(lease, rows, "one"))
        long = Q((f"{lease.until}__gt", Now() + MINUTE / 2))
        assert rows.filter(long).exists()

    def test_a_stranger_renews_nothing(self, kind):
        lease, rows, values = kind
        lease.claim_row(rows, "one", **values)
        expire(lease, rows)
        assert not lease.renew_row(held(lease, rows, "two"))
        assert rows.filter(lease.match_expired()).exists()

    def test_owner_that_lost_the_lease_writes_nothing(self, turns):
        BY_STATE.claim_row(turns, "slow", state="running")
        expire(BY_STATE, turns)
        BY_STATE.claim_row(turns, "next", state="running")
        lost = held(BY_STATE, turns, "slow")
        assert not BY_STATE.renew_row(lost, room=9)
        found = BY_STATE.renew_unless_cancelled(lost, room=9)
        assert found is LeaseStatus.LOST
        assert not BY_STATE.release_row(lost, state="queued")
        row = turns.get()
        assert (row.owner, row.state, row.room) == ("next", "running", 0)

    def test_cancelled_row_is_reported_and_not_renewed(self, turns):
        BY_STATE.claim_row(turns, "one", state="running")
        mine = held(BY_STATE, turns, "one")
        kept = BY_STATE.renew_unless_cancelled(mine, room=3)
        assert kept is LeaseStatus.KEPT
        turns.update(cancel_requested_at=Now())
        expire(BY_STATE, turns)
        told = BY_STATE.renew_unless_cancelled(mine, room=4)
        assert told is LeaseStatus.CANCELLED
        assert turns.filter(BY_STATE.match_expired(), room=3).exists()

    def test_an_ended_row_has_no_owner(self, turns):
        BY_STATE.claim_row(turns, "one", state="running")
        turns.update(state="done")
        assert not BY_STATE.renew_row(held(BY_STATE, turns, "one"))


class TestRelease:
    def test_a_released_row_is_free_at_once(self, kind):
        lease, rows, values = kind
        lease.claim_row(rows, "one", **values)
        back = {"state": "queued"} if values else {}
        assert lease.release_row(held(lease, rows, "one"), **back) == 1
        assert not held(lease, rows, "one").exists()
        assert lease.claim_row(rows, "two", **values)

    def test_process_knows_its_own_rows(self, kind):
        lease, rows, values = kind
        lease.claim_row(rows, new_owner(), **values)
        assert lease.filter_held_here().exists()
        expire(lease, rows)
        lease.claim_row(rows, "of another process", **values)
        assert not lease.filter_held_here().exists()

    def test_claims_have_unique_tokens(self):
        tokens = {new_owner() for _ in range(100)}
        assert len(tokens) == 100
        assert {(token[:12], len(token)) for token in tokens} == {(PROCESS, 36)}


class TestWorkUnderLease:
    async def test_lease_is_renewed_until_the_result_is_there(self):
        renewed = asyncio.Event()

        async def work():
            await renewed.wait()
            return "done"

        async def renew():
            renewed.set()

        assert await work_under_lease(work(), renew, 0.01) == "done"

    async def test_a_database_that_is_away_does_not_end_the_work(self):
        failed = asyncio.Event()

        async def work():
            await failed.wait()
            return "done"

        async def renew():
            failed.set()
            raise OperationalError("away")

        assert await work_under_lease(work(), renew, 0.01) == "done"

    async def test_lost_lease_ends_the_work_before_the_error_is_raised(self):
        ended = []

        async def work():
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(True)

        async def renew():
            raise LostError

        with pytest.raises(LostError):
            await work_under_lease(work(), renew, 0.01)
        assert ended
