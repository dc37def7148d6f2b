"""JSON that can be read in one way only. Of a name that stands twice in one object some
readers take the first value and others the last, and some take `Model` for `model`:
what is checked here would not be what they read.
"""

from collections import Counter
from typing import Any


class RepeatedNameError(ValueError):
    """An object has a name twice; the text is the name."""


def make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these pairs, as `object_pairs_hook` of the json module.
    Raise RepeatedNameError."""
    value = dict(pairs)
    if len(value) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        raise RepeatedNameError(next(name for name, n in counts.items() if n > 1))
    return value
