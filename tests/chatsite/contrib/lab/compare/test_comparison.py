"""Two lists of messages beside each other, without a database."""

import random

from chatsite.contrib.lab.compare.comparison import (
    Block,
    BlockPair,
    align_blocks,
    count_common,
    find_first_difference,
)
from chatsite.contrib.lab.compare.presenter import diff_texts
from chatsite.contrib.lab.compare.sent_requests import make_blocks
from memory.context import RequestContext
from memory.engine.compose import Context


def block(key, text=None, *, quoted=False):
    wire = {"role": "user", "content": str(key) if text is None else text}
    return Block((key,), wire, "window", () if quoted else (1,))


def changes(a, b):
    return [(pair.a, pair.b, pair.change) for pair in align_blocks(a, b)]


def test_notes_between_messages_move_and_the_messages_do_not():
    notes = block("notes", quoted=True)
    a = [block(1), notes, block(2)]
    b = [block(1), block(2), block(3), notes, block(4)]
    assert changes(a, b) == [
        (0, 0, "equal"),
        (2, 1, "equal"),
        (None, 2, "new"),
        (1, 3, "moved"),
        (None, 4, "new"),
    ]


def test_removed_blocks_keep_their_position():
    a = [block(n) for n in range(5)]
    b = [block(0), block(3, "Other words"), block(4), block(5)]
    assert changes(a, b) == [
        (0, 0, "equal"),
        (1, None, "gone"),
        (2, None, "gone"),
        (3, 1, "changed"),
        (4, 2, "equal"),
        (None, 3, "new"),
    ]


def test_every_block_of_both_is_in_one_pair():
    chance = random.Random(7)
    for _ in range(200):
        a, b = (chance.sample(range(12), chance.randint(0, 12)) for _ in "ab")
        pairs = align_blocks(
            *([block(n, quoted=n < 4) for n in each] for each in (a, b))
        )
        assert sorted(p.a for p in pairs if p.a is not None) == [*range(len(a))]
        assert [p.b for p in pairs if p.b is not None] == [*range(len(b))]
        if a == b:
            assert {p.change for p in pairs} <= {"equal"}


def test_the_first_difference_is_at_its_letter():
    def wire(text, role="user", **more):
        return {"role": role, "content": text, **more}

    place = find_first_difference
    assert place([wire("same")], [wire("same")]) is None
    found = place([wire("a"), wire("x" * 5_000 + "y")], [wire("a"), wire("x" * 5_001)])
    assert (found.message, found.character) == (1, 5_000)
    found = place([wire("a")], [wire("a"), wire("b")])
    assert (found.message, found.character) == (1, 0)
    found = place([wire("abc")], [wire("abc", "assistant")])
    assert (found.message, found.character) == (0, 0)
    call = {"function": {"name": "f", "arguments": "{}"}}
    found = place([wire("abc")], [wire("abc", tool_calls=[call])])
    assert (found.message, found.character) == (0, 3)


def test_the_bytes_of_images_are_never_shown():
    url = "data:image/png;base64," + "A" * 9_000
    parts = [
        {"type": "text", "text": "Look"},
        {"type": "image_url", "image_url": {"url": url}},
    ]
    seen = Block((1,), {"role": "user", "content": parts}, "window", (1,))
    assert seen.text.startswith("Look\n[data:image/png;base64")
    assert "AAAA" not in seen.text
    assert align_blocks([seen], [block(1, "Look")]) == [BlockPair(0, 0, "changed")]


def test_long_texts_take_no_longer_than_their_letters():
    """A comparison word by word would take hours here."""
    old, new = "a b " * 300_000, "b a " * 300_000
    pieces, used = diff_texts(f"same {old}", f"same {new}", 24_000)
    assert used <= 24_000
    assert "".join(p.text for p in pieces if p.kind != "added") == f"same {old}"
    assert "".join(p.text for p in pieces if p.kind != "removed") == f"same {new}"
    assert count_common(old, old) == len(old)
    many = [block(n) for n in range(20_000)]
    assert len(align_blocks(many, many[::-1])) == len(many)


def test_requests_that_were_not_composed_here_are_aligned_by_their_words():
    def sent(*texts):
        wire = [{"type": "message", "content": text} for text in texts]
        return make_blocks(RequestContext(Context(()), {}, [], wire, "", 0))

    assert changes(sent("a", "b", "b"), sent("a", "b", "c", "b")) == [
        (0, 0, "equal"),
        (1, 1, "equal"),
        (None, 2, "new"),
        (2, 3, "equal"),
    ]
