"""HTML kept in this process, bounded by the memory it takes."""

import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock

from django.utils.safestring import SafeString


class Cache:
    """What was requested last: a message can have 200,000 characters, so a number of
    entries is no bound. A key holds everything that its HTML was made from."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.bytes = 0
        self._entries: OrderedDict[Hashable, SafeString] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def get_or_make(self, key: Hashable, make: Callable[[], SafeString]) -> SafeString:
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key]
        html = make()
        with self._lock:
            # Another thread may have been faster.
            if key not in self._entries:
                self._entries[key] = html
                self.bytes += self._size(key, html)
            while self.bytes > self.max_bytes:
                self.bytes -= self._size(*self._entries.popitem(last=False))
        return html

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self.bytes = 0

    @staticmethod
    def _size(key: Hashable, html: SafeString) -> int:
        parts = key if isinstance(key, tuple) else (key,)
        return sum(map(sys.getsizeof, parts)) + sys.getsizeof(html)
