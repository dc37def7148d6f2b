"""People take turns in the thread of the database and in the event loop."""

import asyncio
import sys
import threading

import pytest
from asgiref.sync import SyncToAsync
from channels.db import database_sync_to_async

from chatsite import fair_queue
from chatsite.fair_queue import FairQueue, work_owner, working_for
from chatsite.live import fair_share
from chatsite.llm import event_stream
from chatsite.turns import runner
from memory.engine.summaries.summarizer import Checks
from tests.patience import PATIENCE

ME, OTHER, THIRD = 1, 2, 3


def put(queue, who, *works):
    with working_for(who):
        for work in works:
            queue.put(work)


def test_users_alternate_after_each_piece_of_work():
    queue = FairQueue()
    put(queue, ME, "a", "b", "c", "d")
    put(queue, OTHER, 1, 2)
    assert [queue.get(), queue.get()] == ["a", 1]
    put(queue, THIRD, "x")
    assert [queue.get() for _ in range(5)] == ["b", "x", 2, "c", "d"]
    assert not queue._circle


def test_user_who_comes_while_another_is_served_is_next():
    queue = FairQueue()
    put(queue, ME, "a", "b", "c")
    assert queue.get() == "a"
    put(queue, OTHER, 1)
    assert queue.get() == 1
    put(queue, OTHER, 2)
    assert [queue.get() for _ in range(3)] == ["b", 2, "c"]


async def test_the_database_thread_is_fair(monkeypatch):
    thread = fair_queue.make_fair_thread()
    monkeypatch.setattr(SyncToAsync, "single_thread_executor", thread)
    begun, go_on, order = threading.Event(), threading.Event(), []

    def hold():
        begun.set()
        go_on.wait(10 * PATIENCE)

    async def ask(who, work):
        with working_for(who):
            await database_sync_to_async(work)()

    tasks = [asyncio.create_task(ask(ME, hold))]
    await asyncio.to_thread(begun.wait, 10 * PATIENCE)
    for number in range(9):
        tasks.append(asyncio.create_task(ask(ME, lambda n=number: order.append(n))))
    tasks.append(asyncio.create_task(ask(OTHER, lambda: order.append("other"))))
    await asyncio.sleep(0.01)
    go_on.set()
    await asyncio.gather(*tasks)
    thread.shutdown()
    assert order.index("other") <= 1
    assert [each for each in order if each != "other"] == list(range(9))


async def test_background_task_belongs_to_the_same_user():
    found = []

    async def work():
        found.append(work_owner.get())

    for who in (ME, None):
        with working_for(who):
            task = runner.spawn_task(work())
        await task
    assert found == [ME, None]


async def test_streams_of_one_user_are_read_one_in_a_round_of_the_loop():
    size, rounds, read = event_stream.TURN_BYTES, 0, []

    async def body():
        yield b"x" * (size * 20 + 1)

    async def read_stream():
        async for part, _ in event_stream.in_turn(body()):
            read.append((rounds, len(part)))

    with working_for(ME):
        mine = [asyncio.create_task(read_stream()) for _ in range(3)]
    while not all(task.done() for task in mine):
        await asyncio.sleep(0)
        rounds += 1
    assert sum(part for _, part in read) == 3 * (size * 20 + 1)
    assert max(part for _, part in read) == size
    long_ones = [at for at, part in read if part == size]
    assert max(long_ones.count(at) for at in long_ones) <= 2


async def test_a_person_leaves_the_loop_to_others_for_longer_than_they_had_it(
    monkeypatch,
):
    spent, waited = iter([10.0, 10.002, 20.0, 20.001]), []

    async def sleep(seconds):
        waited.append(round(seconds, 6))

    monkeypatch.setattr(fair_queue, "thread_time", lambda: next(spent))
    monkeypatch.setattr(fair_queue.asyncio, "sleep", sleep)
    for _ in range(2):
        async with fair_queue.loop_turn():
            pass
    share = fair_queue.OTHERS_SHARE
    assert waited == [round(0.002 * share, 6), round(0.001 * share, 6)]


async def test_a_stream_in_turn_is_the_same_bytes():
    chunks = [bytes([n % 251]) * n for n in (0, 1, 3_999, 4_000, 4_001, 8_000, 9_000)]

    async def body():
        for chunk in chunks:
            yield chunk

    parts = [part async for part, _ in event_stream.in_turn(body())]
    assert b"".join(parts) == b"".join(chunks)
    assert max(map(len, parts)) <= event_stream.TURN_BYTES


async def test_message_does_not_wait_for_a_rendering(monkeypatch):
    drawing = fair_queue.make_fair_thread()
    monkeypatch.setattr(fair_queue.FragmentThread, "thread", drawing)
    begun, sent = threading.Event(), threading.Event()

    def draw():
        begun.set()
        return sent.wait(10 * PATIENCE)

    drawn = asyncio.create_task(fair_share.find_fair_share(ME).run_drawing(draw))
    await asyncio.to_thread(begun.wait, 10 * PATIENCE)
    await fair_share.find_fair_share(OTHER).run(sent.set)
    assert await drawn
    drawing.shutdown()


def test_a_server_is_made_fair(monkeypatch):
    monkeypatch.setattr(SyncToAsync, "single_thread_executor", None)
    monkeypatch.setattr(fair_queue.FragmentThread, "thread", None)
    monkeypatch.setattr(Checks, "thread", None)
    before = sys.getswitchinterval()
    try:
        fair_queue.install_fair_queue()
        assert sys.getswitchinterval() == pytest.approx(fair_queue.SWITCH_SECONDS)
    finally:
        sys.setswitchinterval(before)
    drawing, database = (
        fair_queue.FragmentThread.thread,
        SyncToAsync.single_thread_executor,
    )
    threads = {database, drawing, Checks.thread}
    assert len(threads) == 3
    assert all(isinstance(each._work_queue, FairQueue) for each in threads)
