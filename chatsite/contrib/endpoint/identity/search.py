"""How far a chain is known: a few bounded look-ups, however long the history is."""

from collections.abc import Sequence
from typing import NamedTuple

from .history import Message
from .known import MOST_HASHES, Known, Place

# A request mostly adds less than this to what is known.
FIRST_LOOK = 16


class Reach(NamedTuple):
    """The longest known chain: of so many messages, and where it ends."""

    length: int
    places: Sequence[Place]


def find_reach(messages: Sequence[Message], known: Known) -> Reach:
    """The longest known chain, by a look at the end, and else in ever smaller steps.

    Where not all chains of a history are kept, it may find a shorter one.
    """
    total = len(messages)
    first = max(0, total - FIRST_LOOK)
    if reach := _look_at(messages, range(first, total), known):
        return reach
    best = Reach(0, ())
    low, high = 0, first
    while low < high:
        step = max(1, (high - low) // MOST_HASHES + ((high - low) % MOST_HASHES > 0))
        found = _look_at(messages, range(low, high, step), known)
        if found is None:
            # Nothing below the first of the steps is left to look at.
            return best
        best = found
        low, high = found.length, min(high, found.length + step - 1)
    return best


def _look_at(messages: Sequence[Message], indexes: range, known: Known) -> Reach | None:
    if not indexes:
        return None
    found = known.find_chains([messages[index].chain for index in indexes])
    for index in reversed(indexes):
        if places := found.get(messages[index].chain):
            return Reach(index + 1, places)
    return None
