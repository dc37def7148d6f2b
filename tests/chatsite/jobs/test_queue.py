"""Jobs: one for a slot, few at once, ended when their process died."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from chatsite.jobs import queue
from chatsite.turns.models import Job

pytestmark = pytest.mark.django_db


def add(user, slot="a"):
    return queue.add("test", user, slot)


def stop_renewing(claim):
    past = Now() - timedelta(seconds=1)
    Job.objects.filter(pk=claim.row_id).update(lease_until=past)


def test_a_slot_has_one_unfinished_job(alice):
    first = add(alice)
    with pytest.raises(queue.JobBusyError):
        add(alice)
    assert add(alice, "b") != first
    queue.close_job(first, "failed", "It broke.")
    add(alice)
    assert Job.objects.filter(slot="a").count() == 1


def test_running_jobs_take_at_most_all_places(alice):
    claims = [add(alice, slot) for slot in "abc"]
    assert [bool(queue.begin(claim, 2)) for claim in claims] == [True, True, False]
    queue.close_job(claims[0], "done")
    assert queue.begin(claims[2], 2)


def test_job_records_its_progress_and_its_result(alice):
    claim = add(alice)
    queue.begin(claim, 1)
    assert queue.renew(claim, done=3, total=9)
    assert queue.close_job(claim, "done", result={"n": 1})
    job = queue.latest("test", alice)
    assert (job.state, job.done, job.total, job.result) == ("done", 3, 9, {"n": 1})
    assert not queue.close_job(claim, "failed", "Too late.")


@pytest.mark.parametrize("runs", [False, True])
def test_job_without_a_renewed_lease_is_ended(alice, runs):
    claim, kept = add(alice), add(alice, "kept")
    if runs:
        queue.begin(claim, 1)
    stop_renewing(claim)
    stop_renewing(kept)
    queue.keep([kept])
    assert queue.end_dead() == 1
    assert Job.objects.get(pk=claim.row_id).error == queue.DIED
    assert not queue.renew(claim)
    assert queue.renew(kept)


def test_jobs_go_with_their_person(alice):
    add(alice)
    alice.delete()
    assert not Job.objects.exists()
