"""Leases of relayed turns: of a slow provider, and of killed and living processes."""

import asyncio
import time
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from chatsite.turns import checkpoints, runner
from chatsite.turns.models import Turn
from memory.models import Message, ModelCall
from tests.fakes.upstream import answer_ok

from .asgi_client import Call
from .test_chat_completions import PATH, body_of, complete, key, read, says, state

__all__ = ["key"]
pytestmark = pytest.mark.django_db(transaction=True)
LEASE = 1.0


@pytest.fixture(autouse=True)
def _short_leases(settings, monkeypatch):
    settings.TURN_LEASE_SECONDS, settings.TURN_SWEEP_SECONDS = LEASE, 0.2
    monkeypatch.setattr(checkpoints, "CHECKPOINT_SECONDS", LEASE / 5)


async def sweep_beside(work):
    """Return the result of the work, beside which another process sweeps."""
    task = asyncio.create_task(work)
    while not task.done():
        await runner.sweep_due_work()
        await asyncio.wait({task}, timeout=0.1)
    return task.result()


async def hold_last_turn(**changed):
    last = await Turn.objects.alatest("pk")
    lease_until = Now() + timedelta(seconds=LEASE)
    await Turn.objects.filter(pk=last.pk).aupdate(lease_until=lease_until, **changed)


async def leave_turn(key):
    """Return a history whose last turn was begun and has another process's lease."""
    said = [says("user", "Hello")]
    said += [read(await complete(key, *said)), says("user", "And now?")]
    call = Call(PATH, body_of(*said, stream=True, model="ok-slow:200:0.05"), key=key)
    task = asyncio.create_task(call.run())
    await call.until(b"word2")
    await hold_last_turn(owner="another-process", text="word1 wo")
    await task
    await hold_last_turn()
    return said


@pytest.mark.parametrize("stream", [False, True])
async def test_lease_is_renewed_until_a_slow_answer_begins(key, upstream, stream):
    def answer(exchange):
        time.sleep(2 * LEASE)
        answer_ok(exchange)

    upstream.script(answer)
    call = await sweep_beside(complete(key, says("user", "Hello"), stream=stream))
    assert call.answer == bytes(upstream.requests[-1].answered)
    assert await state() == [["u: Hello", "a: Reply to: Hello"]]
    assert (await Turn.objects.aget()).state == "done"


async def test_turn_of_a_killed_process_is_continued_by_the_same_request(key, upstream):
    said = await leave_turn(key)
    call = await sweep_beside(complete(key, *said))
    assert call.headers["x-windowpane-lineage"] == "continued"
    begun = ["u: Hello", "a: Reply to: Hello", "u: And now?", "a: word1 wo"]
    assert await state() == [[*begun, "a: Reply to: And now?"]]
    replies = Message.objects.filter(superseded_at=None, role="assistant")
    assert await replies.acount() == 2
    said += [read(call), says("user", "Thank you")]
    call = await complete(key, *said)
    assert call.headers["x-windowpane-lineage"] == "continued"


async def test_same_request_is_a_branch_while_another_process_renews_the_lease(
    key, upstream
):
    said = await leave_turn(key)
    task = asyncio.create_task(complete(key, *said))
    while not task.done():
        await hold_last_turn()
        await asyncio.wait({task}, timeout=LEASE / 4)
    assert task.result().headers["x-windowpane-lineage"] == "branch"
    assert await Turn.objects.filter(owner="another-process").acount() == 1


async def test_client_that_hangs_up_while_its_request_waits_stores_nothing(
    key, upstream
):
    said = await leave_turn(key)
    before = await ModelCall.objects.acount()
    call = Call(PATH, body_of(*said), key=key)
    task = asyncio.create_task(call.run())
    await asyncio.sleep(LEASE / 2)
    call.hang_up()
    await task
    assert (call.status, await ModelCall.objects.acount()) == (None, before)
