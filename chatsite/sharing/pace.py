"""How many requests one address may make to shared pages.

Counted in this process alone and without the database: it keeps strangers from taking
the time that others need, and refusing one has to cost next to nothing. No pace would
help to guess a link of 192 bits.
"""

import time
from collections import OrderedDict
from threading import Lock

from django.conf import settings
from django.http import HttpRequest

from chatsite.proxies import client_address

# What may be used at once, in seconds of the pace.
BURST = 60.0
# A link that opens nothing counts as so many requests.
WRONG = 10
# The addresses heard last; one that was forgotten begins again.
MOST_ADDRESSES = 10_000


class Pace:
    """For each address the time at which its last request would be on time."""

    def __init__(self) -> None:
        self._due: OrderedDict[str, float] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._due)

    def wait(self, request: HttpRequest) -> float:
        """Count a request; the seconds that its address has to wait, and then it is
        not counted; 0 = none."""
        return self._spend(request, 1, BURST)

    def count_wrong(self, request: HttpRequest) -> None:
        """The request that was just counted has opened nothing."""
        self._spend(request, WRONG - 1, float("inf"))

    def _spend(self, request: HttpRequest, requests: int, most: float) -> float:
        limit, address = settings.SHARE_REQUESTS_PER_MINUTE, client_address(request)
        # A Unix socket tells no address: then the proxy before it has to count.
        if limit <= 0 or address is None:
            return 0.0
        now = time.monotonic()
        with self._lock:
            due = max(self._due.get(address, now), now) + requests * 60 / limit
            # Not `due - now > most`: rounded, 60 s from now can be more than 60 s.
            if due > now + most:
                return due - now - most
            self._due[address] = due
            self._due.move_to_end(address)
            while len(self._due) > MOST_ADDRESSES:
                self._due.popitem(last=False)
        return 0.0

    def clear(self) -> None:
        with self._lock:
            self._due.clear()


pace = Pace()
