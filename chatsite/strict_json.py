"""JSON that can be read in one way only.

If a name is repeated in an object, some readers take the first value and others the
last, and some take `Model` for `model`: they would not read what was checked here.
"""

from collections import Counter
from typing import Any


class RepeatedNameError(ValueError):
    """An object has a name twice; the text is the name."""


def make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these pairs, as `object_pairs_hook` of the json module.

    Raises RepeatedNameError.
    """
    value = dict(pairs)
    if len(value) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        raise RepeatedNameError(next(name for name, n in counts.items() if n > 1))
    return value
