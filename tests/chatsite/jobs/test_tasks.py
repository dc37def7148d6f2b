"""Jobs as tasks: they end however they end, keep what was paid for, and can be lost."""

import asyncio
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db.models.functions import Now
from django.utils import translation

from chatsite import plugins
from chatsite.fair_queue import work_owner
from chatsite.jobs import queue, tasks, worker
from chatsite.turns.models import Job

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(worker, "RENEW_SECONDS", 0.02)


@pytest.fixture
def perform(monkeypatch, alice):
    """perform(work) -> the job's row after this work was done as a job of Alice's."""

    def do(work, language=None):
        sources = plugins.sources[tasks.JobWork]
        monkeypatch.setitem(sources, "test", tasks.JobWork(work))
        claim = queue.add("test", alice, "slot")
        async_to_sync(tasks.run_job)(claim, language)
        return Job.objects.filter(pk=claim.row_id).first()

    return do


def test_result_of_the_work_is_stored(perform):
    async def work(running):
        return {"seven": 7}

    job = perform(work)
    assert (job.state, job.result) == ("done", {"seven": 7})


def test_job_runs_as_work_of_its_user(perform, alice):
    async def work(running):
        return {"person": work_owner.get()}

    assert perform(work).result == {"person": alice.pk}


def test_the_reason_of_a_failure_is_kept(perform):
    async def work(running):
        raise tasks.JobError("The file is torn.")

    job = perform(work)
    assert (job.state, job.error) == ("failed", "The file is torn.")


def test_a_crash_is_an_end_too(perform):
    async def work(running):
        raise ZeroDivisionError

    job = perform(work)
    assert job.state == "failed"
    assert "went wrong" in job.error


def test_job_runs_in_the_language_of_its_user(perform):
    async def work(running):
        return {"language": translation.get_language()}

    assert perform(work, "zh-hans").result == {"language": "zh-hans"}


def test_a_row_that_is_gone_ends_it(perform):
    async def work(running):
        await Job.objects.all().adelete()
        await asyncio.sleep(30)

    assert perform(work) is None


def test_job_ended_by_another_process_stays_ended(perform):
    def lose():
        # In one call: no renewal comes in between.
        Job.objects.update(lease_until=Now() - timedelta(seconds=1))
        queue.end_dead()

    async def work(running):
        await sync_to_async(lose)()
        return {"late": True}

    job = perform(work)
    assert (job.state, job.error, job.result) == ("failed", queue.DIED, {})


def test_a_cancelled_one_ends_soon(perform):
    async def work(running):
        await sync_to_async(queue.JOBS.cancel_rows)(Job.objects.all())
        await asyncio.sleep(30)

    assert perform(work).state == "cancelled"


def test_cancelled_job_completes_its_paid_call_and_starts_no_other(perform):
    async def work(running):
        async with running.paid_call():
            await sync_to_async(queue.JOBS.cancel_rows)(Job.objects.all())
            await asyncio.sleep(0.2)
            await running.save({"paid": 1})
        async with running.paid_call():
            await running.save({"paid": 2})

    job = perform(work)
    assert (job.state, job.saved) == ("cancelled", {"paid": 1})


def test_a_process_that_ends_says_so(perform):
    async def work(running):
        await sync_to_async(queue.end_own)()
        await asyncio.sleep(30)

    job = perform(work)
    assert (job.state, job.error) == ("failed", queue.DIED)


def test_old_results_go(perform):
    async def work(running):
        return {}

    job = perform(work)
    Job.objects.update(finished_at=Now() - timedelta(days=2))
    tasks.sweep_jobs()
    assert not Job.objects.filter(pk=job.pk).exists()
