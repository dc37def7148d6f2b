"""Limits of waits in tests, which a slow or busy machine can keep.

A wait ends as soon as what it waits for is there, so a generous limit costs nothing.
`make test`, which may run on any machine, multiplies all limits by TEST_PATIENCE.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = float(os.environ.get("TEST_PATIENCE", "1"))


@contextmanager
def within(
    seconds: float, clock: Callable[[], float] = time.monotonic
) -> Iterator[None]:
    """Fail if what is inside takes longer. With `time.thread_time` as the clock other
    processes don't count: for functions that only compute."""
    started = clock()
    yield
    taken = clock() - started
    limit = seconds * PATIENCE
    assert taken < limit, f"It took {taken:.2f} s, which is over {limit:.2f} s."


def wait_for(
    condition: Callable[[], object], seconds: float = 10.0, what: str = "condition"
) -> object:
    """Poll until the condition is true and return its value."""
    limit = seconds * PATIENCE
    end = time.monotonic() + limit
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"Timed out after {limit} s waiting for {what}.")
        time.sleep(0.05)
    return value
