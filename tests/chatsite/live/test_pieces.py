"""Long fragments are cut, and nothing of them is lost."""

import random
import re

import pytest

from chatsite.live import pieces
from chatsite.protocol import events

PIECE = re.compile(r"<!--piece (\d+)( last)?-->")


def messages_of(parts):
    return [message for ready in pieces.cut_fragment(parts) for message in ready]


def joined(messages):
    """Return the result of static/js/pieces.js."""
    held = ""
    for number, message in enumerate(messages):
        found = PIECE.match(message)
        assert found[1] == str(number)
        assert bool(found[2]) == (number == len(messages) - 1)
        held += message[found.end() :]
    return held


def test_a_short_fragment_is_one_message_as_it_is():
    assert messages_of(["<p>", "Hello", "</p>"]) == ["<p>Hello</p>"]


@pytest.mark.parametrize("char", ["x", "狗", "\U0001f98a"])
def test_a_long_one_comes_in_pieces_that_every_server_takes(char):
    rng = random.Random(26)
    parts = [char * rng.randrange(100_000) for _ in range(20)]
    messages = messages_of(parts)
    assert len(messages) > 20
    assert max(len(message.encode()) for message in messages) < 256 * 1024
    assert joined(messages) == "".join(parts)


def test_long_fragment_is_made_bit_by_bit():
    made = []
    work = pieces.cut_fragment(made.append(n) or "x" for n in range(10))
    for count in range(1, 11):
        assert pieces.draw_slice(work, 0.0) == ([], False)
        assert len(made) == count
    assert pieces.draw_slice(work, 0.0) == (["x" * 10], False)
    assert pieces.draw_slice(work, 0.0) == ([], True)


def test_short_fragment_is_made_at_once():
    work = pieces.cut_fragment("x" for _ in range(10))
    assert pieces.draw_slice(work, 10) == (["x" * 10], True)


def test_a_frame_in_pieces_says_the_same():
    known, tail = "0123456789", "abcdefghijk"
    frame = events.Frame(turn=7, attempt=2, base=4, tail=tail)
    text = known
    for piece in frame.split_tail(3):
        assert len(piece.tail) <= 3
        assert (piece.turn, piece.attempt) == (7, 2)
        text = text[: piece.base] + piece.tail
    assert text == known[:4] + tail
    empty = events.Frame(turn=7, attempt=2, base=4, tail="")
    assert list(empty.split_tail(3)) == [empty]
