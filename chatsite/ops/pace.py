"""A limit on the number of requests in a time.

It is counted in this process and without the database: refusing one request too many
has to cost next to nothing.
"""

import time
from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock

# The last senders; one that was forgotten begins again.
MAX_KEPT = 10_000
ROUNDING = 0.001


class Pace:
    """The times at which the next request of each sender would be on time.

    After a pause, the requests of `seconds` may be made at once.
    """

    def __init__(self, seconds: float = 60.0) -> None:
        self.seconds = seconds
        self._due: OrderedDict[Hashable, float] = OrderedDict()
        self._lock = Lock()

    def count_request(
        self, who: Hashable, limit: int, times: int = 1, *, is_late: bool = False
    ) -> float:
        """Count a request of a sender who may make `limit` of them in `seconds`.

        Return the seconds to wait, and then it is not counted; 0 = none. `is_late`: it
        was answered already, and counts in any case.
        """
        if limit <= 0:
            return 0.0
        now = time.monotonic()
        with self._lock:
            due = max(self._due.get(who, now), now) + times * self.seconds / limit
            # Rounded, 60 s from now can be more than 60 s.
            if due > now + self.seconds + ROUNDING and not is_late:
                return due - now - self.seconds
            self._due[who] = due
            self._due.move_to_end(who)
            while len(self._due) > MAX_KEPT:
                self._due.popitem(last=False)
        return 0.0

    def __len__(self) -> int:
        return len(self._due)

    def clear(self) -> None:
        with self._lock:
            self._due.clear()
