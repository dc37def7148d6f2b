"""Long fragments reach a page in pieces, which static/js/pieces.js puts together again:
no server, proxy or browser on the way has to take more than one piece at once.

They are made bit by bit, too, so that no command waits for the whole of it.
"""

from collections.abc import Iterable, Iterator
from time import monotonic

# In UTF-8 at most four times as many bytes.
PIECE_CHARS = 32_000
# How long the parts of a fragment are made before others have their turn.
SLICE_SECONDS = 0.02


def cut(parts: Iterable[str]) -> Iterator[list[str]]:
    """The messages that make up one fragment, as many at a time as are ready.

    A short fragment is one message, as it is. The pieces of a long one are numbered,
    and the last one says that it is the last.
    """
    held, number, until = "", 0, monotonic() + SLICE_SECONDS
    for part in parts:
        held += part
        ready = []
        while len(held) > PIECE_CHARS:
            ready.append(f"<!--piece {number}-->{held[:PIECE_CHARS]}")
            held, number = held[PIECE_CHARS:], number + 1
        if ready or monotonic() >= until:
            yield ready
            until = monotonic() + SLICE_SECONDS
    yield [f"<!--piece {number} last-->{held}" if number else held]
