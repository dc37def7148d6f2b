"""Word diffs of summaries."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatsite.pages.diff import DiffPiece, diff_words
from tests.patience import within

TEXTS = st.text(alphabet="ab 你好。\n", max_size=40)


def test_diff_shows_changed_words_whole():
    assert diff_words("Anna has 3,200 boxes.", "Anna has 2,500 boxes.") == [
        DiffPiece("same", "Anna has "),
        DiffPiece("removed", "3,200"),
        DiffPiece("added", "2,500"),
        DiffPiece("same", " boxes."),
    ]


def test_diff_compares_chinese_by_character():
    assert diff_words("她喜欢红茶。", "她喜欢绿茶。") == [
        DiffPiece("same", "她喜欢"),
        DiffPiece("removed", "红"),
        DiffPiece("added", "绿"),
        DiffPiece("same", "茶。"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [("", "", []), ("", "a b", ["added"]), ("a b", "", ["removed"])],
)
def test_diff_handles_an_empty_text(old, new, kinds):
    assert [piece.kind for piece in diff_words(old, new)] == kinds


@given(TEXTS, TEXTS)
def test_diff_contains_both_texts(old, new):
    pieces = diff_words(old, new)
    assert "".join(p.text for p in pieces if p.kind != "added") == old
    assert "".join(p.text for p in pieces if p.kind != "removed") == new


def test_long_texts_are_compared_by_line():
    lines = [f"Fact {n} of the long list.\n" for n in range(2000)]
    changed = [*lines[:1000], "Something else entirely.\n", *lines[1001:]]
    with within(2, time.thread_time):
        pieces = diff_words("".join(lines), "".join(changed))
    assert [piece.kind for piece in pieces] == ["same", "removed", "added", "same"]
