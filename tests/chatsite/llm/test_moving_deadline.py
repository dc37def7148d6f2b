"""Waits that end at a deadline which moves."""

import asyncio
from contextlib import closing

import pytest

from chatsite.llm.streaming import LOOK_SECONDS, MovingDeadline


@pytest.fixture
def clock():
    """The end of a deadline, in seconds from now; None: never."""

    class Clock:
        end = 1e9

        def set(self, seconds):
            self.end = asyncio.get_running_loop().time() + seconds

    return Clock()


async def test_wait_ends_at_the_deadline(clock):
    clock.set(0.05)
    with closing(MovingDeadline(lambda: clock.end)) as deadline:
        with pytest.raises(TimeoutError):
            await deadline.limit_wait(asyncio.Event().wait)
        assert asyncio.current_task().cancelling() == 0


async def test_wait_goes_on_while_the_deadline_moves_away(clock):
    clock.set(0.05)
    with closing(MovingDeadline(lambda: clock.end)) as deadline:
        asyncio.get_running_loop().call_later(0.01, clock.set, 100)
        assert await deadline.limit_wait(asyncio.sleep, 0.2, "done") == "done"


async def test_deadline_that_comes_nearer_ends_a_wait(clock):
    with closing(MovingDeadline(lambda: clock.end)) as deadline:
        asyncio.get_running_loop().call_soon(clock.set, 0)
        async with asyncio.timeout(LOOK_SECONDS + 10):
            with pytest.raises(TimeoutError):
                await deadline.limit_wait(asyncio.Event().wait)
            assert deadline._is_over


async def test_deadline_that_passed_between_waits_ends_the_next(clock):
    clock.set(0.01)
    with closing(MovingDeadline(lambda: clock.end)) as deadline:
        assert await deadline.limit_wait(asyncio.sleep, 0, "first") == "first"
        await asyncio.sleep(0.1)
        with pytest.raises(TimeoutError):
            await deadline.limit_wait(asyncio.sleep, 0, "second")


async def test_cancelled_wait_is_no_timeout(clock):
    with closing(MovingDeadline(lambda: clock.end)) as deadline:
        task = asyncio.create_task(deadline.limit_wait(asyncio.Event().wait))
        await asyncio.sleep(0)
        task.cancel()
        clock.set(0)
        deadline._look()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_deadline_that_has_passed_lets_no_work_begin(clock):
    clock.set(0)
    deadline = MovingDeadline(lambda: clock.end)
    with pytest.raises(TimeoutError), closing(deadline):
        await deadline.limit_wait(pytest.fail)


async def test_closed_deadline_cancels_no_task(clock):
    clock.set(0.01)
    with closing(MovingDeadline(lambda: clock.end)) as deadline:
        pass
    await asyncio.sleep(0.1)
    assert not deadline._is_over
