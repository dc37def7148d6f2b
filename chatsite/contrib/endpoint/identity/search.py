"""The search for the longest known chain, in a few bounded look-ups."""

from collections.abc import Sequence
from typing import NamedTuple

from .history import Message
from .known import MOST_HASHES, Known, Place

# A request usually adds fewer messages than this.
FIRST_LOOK = 16


class Reach(NamedTuple):
    """The number of messages of the longest known chain, and the places of its end."""

    length: int
    places: Sequence[Place]


def find_reach(messages: Sequence[Message], known: Known) -> Reach:
    """Find the longest known chain: near the end first, then in ever smaller steps.

    If not all chains of a history are stored, it may find a shorter one.
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
            # All chains below the first of the steps were searched.
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
