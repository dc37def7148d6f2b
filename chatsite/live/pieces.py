"""The pieces in which long fragments reach a page.

static/js/pieces.js puts them together again: no server, proxy or browser on the way has
to take more than one piece at once. They are rendered bit by bit, too, so that no
command waits for the whole fragment.
"""

from collections.abc import Iterable, Iterator
from time import monotonic

# In UTF-8 at most four times as many bytes.
PIECE_CHARS = 32_000
# How long one fragment is drawn before others have their turn.
SLICE_SECONDS = 0.02


def cut_fragment(parts: Iterable[str]) -> Iterator[list[str]]:
    """Yield the messages of one fragment: those that are ready after each part.

    A short fragment is one message, as it is. The pieces of a long one are numbered,
    and the last one says that it is the last.
    """
    held, number = "", 0
    for part in parts:
        held += part
        ready = []
        while len(held) > PIECE_CHARS:
            ready.append(f"<!--piece {number}-->{held[:PIECE_CHARS]}")
            held, number = held[PIECE_CHARS:], number + 1
        yield ready
    yield [f"<!--piece {number} last-->{held}" if number else held]


def draw_slice(drawn: Iterator[list[str]], seconds: float) -> tuple[list[str], bool]:
    """Draw for so many seconds; return the texts, and True if they are the last."""
    texts, until = [], monotonic() + seconds
    for ready in drawn:
        texts += ready
        if monotonic() >= until:
            return texts, False
    return texts, True
