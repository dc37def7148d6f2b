"""HTML kept in this process, bounded by the memory it takes."""

import sys
from collections.abc import Callable, Hashable
from contextlib import suppress
from threading import Lock

from cachetools import LRUCache
from django.utils.safestring import SafeString


class Cache(LRUCache):
    """The rendered HTML that was requested last, bounded by its size.

    A message can have 200,000 characters, so a number of entries would be no bound. A
    key holds everything that its HTML was made from, and is in the entry, as it counts
    for the memory.
    """

    def __init__(self, max_bytes: int) -> None:
        super().__init__(max_bytes, getsizeof=_measure_entry)
        self._lock = Lock()

    def get_or_make(self, key: Hashable, make: Callable[[], SafeString]) -> SafeString:
        with self._lock:
            if entry := self.get(key):
                return entry[1]
        html = make()
        # An entry that is larger than the whole cache is refused.
        with self._lock, suppress(ValueError):
            self[key] = key, html
        return html


def _measure_entry(entry: tuple[Hashable, SafeString]) -> int:
    key, html = entry
    parts = key if isinstance(key, tuple) else (key,)
    return sum(map(sys.getsizeof, (*parts, html)))
