"""Formatting a reply while it grows: what is settled stays, and is made once."""

from dataclasses import replace
from threading import Event

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chatsite.pages import incremental, markdown
from tests.patience import PATIENCE, wait_for

# What begins, ends or goes on with a block, in any order.
PIECES = (
    *("word ", "**b** ", "# h", "- item", "  - sub", "1. one", "10) z", "> quote"),
    *("\n", "\n\n", "\r\n", "\n- ", "\n> ", "\n1. ", "\n   ", "\n    ", "  ", "\t"),
    *("```", "```py", "~~~", "``", "\n```\n", "    code", "---", "===", "`c`", "[a]"),
    *("| a | b |", "|---|---|", "a | b", "$$", "$$x$$", "\n$$\n", "\\[", "\\]", "$"),
    *("$x_1$", "[^1]", "\n[^2]: ", "https://ok.example ", "[^note]", "\n[^note]: "),
    *(
        "**价：**三",
        "<br>",
        "<b>",
        "</b>",
        "```md",
        "\n```md\n",
        "$HOME/x:$P",
        "</sub>",
    ),
    *("\\begin{align}", "\\end{align}", "\n\\begin{align}\n", "\n\\end{align}\n"),
)
TEXTS = st.lists(st.sampled_from(PIECES), min_size=5, max_size=60).map("".join)
STEPS = st.lists(st.integers(1, 12), min_size=1, max_size=20)


class Here:
    """An executor in place of the thread, so that tests need not wait."""

    def submit(self, act, *args):
        act(*args)


def grow(text, steps=(1,)):
    settler, end = incremental.IncrementalRenderer(), 0
    while end < len(text):
        for step in steps:
            end += step
            settler.settle_text(text[:end])
    return settler


@given(TEXTS, STEPS)
@settings(max_examples=300, deadline=None)
@example("para\n$$\nx\n# h\ny$$\n\nend", [1])
@example("para\n\\begin{align}\nx\n# h\ny\n\\end{align}\n\nend", [1])
@example("said[^note]\n\n[^note]: one\n\nend", [2])
@example("- a\n\n- b\n\n    c\n\nend", [1])
@example("```md\n```py\nx\n```\ny\n```\nend\n\nmore", [1])
@example("a <b>\n\nb</b> c\n\nend", [1])
@example("a | b\n---|---\n1 | 2\n\nend", [3])
def test_settled_part_is_the_beginning_of_the_final_html(text, steps):
    settler = grow(text, steps)
    settled = str(settler.view_reply(text).join_html())
    rest = markdown.render_part(text[settler.view_reply(text).end :], {})
    assert settled + rest == markdown.render_markdown(text)


@pytest.mark.parametrize(
    ("text", "settled"),
    [
        ("One.\n\nTwo", ""),
        ("One.\n\nTwo\n", "One.\n\n"),
        ("# One\nTwo\n", "# One\n"),
        ("- a\n\n- b\n\nThree\n", "- a\n\n- b\n\n"),
        ("One\n```\ncode\n\nmore\n", "One\n"),
        ("```\ncode\n```\n", "```\ncode\n```\n"),
        ("| a |\n|---|\n| 1 |\n", ""),
    ],
)
def test_a_block_is_settled_once_nothing_can_change_it(text, settled):
    assert grow(text).state.text == settled


def test_a_link_that_was_defined_before_is_a_link():
    text = "[a]: https://ok.example\n\nSee [this][a].\n\nEnd\n"
    assert 'href="https://ok.example"' in grow(text).view_reply(text).join_html()


def test_open_markdown_is_shown_with_the_code_in_it():
    text = "```md\n```py\nx\n```\ny\n"
    view = grow(text).view_reply(text)
    assert (view.form, view.tail) == ("code", "```py\nx\n```\ny\n")


def test_closed_markdown_is_settled_at_once(monkeypatch):
    monkeypatch.setattr(incremental, "_pool", Here())
    text = "```md\n" + "word\n" * 400 + "```py\nx\n```\n"
    settler = incremental.IncrementalRenderer()
    settler.view_reply(text)
    assert settler.view_reply(f"{text}```\n").form == "text"
    assert settler.view_reply(f"{text}```\n").end == len(text) + 4


DEAR = (
    "- item\n" * 2_000,
    "```\n" + "x = 1\n\n" * 2_000,
    "| a |\n|---|\n" + "| b |\n" * 1_500,
    "word word\n" * 1_500,
    "\n".join("  " * n + "- item" for n in range(60)),
    "Para.\n\n" * 1_500,
    "```md\n" + "```py\nx\n```\n" * 800,
)


@pytest.mark.parametrize("text", DEAR, ids=range(len(DEAR)))
def test_a_reply_is_read_a_fixed_number_of_times(text, monkeypatch):
    read = []
    find_blocks = markdown.find_blocks
    monkeypatch.setattr(
        markdown,
        "find_blocks",
        lambda text, links: read.append(len(text)) or find_blocks(text, links),
    )
    monkeypatch.setattr(incremental, "_pool", Here())
    settler = incremental.IncrementalRenderer()
    for end in range(0, len(text), 40):
        settler.view_reply(text[:end])
    assert read
    assert sum(read) <= (incremental.GROWTH + 2) * len(text)


class CountingPattern:
    """A pattern that counts the letters that are searched for it."""

    def __init__(self, pattern, read):
        self.pattern, self.read = pattern, read

    def finditer(self, text, after, before):
        self.read.append(before - after)
        return self.pattern.finditer(text, after, before)


LONG_CODE = (
    "```\n" + "x = 1\n\n" * 2_000,
    "Words.\n\n~~~py\n" + "x = 1\n" * 3_000 + "~~~\n\nEnd\n",
    "```md\n" + "```py\nx\n```\n" * 800,
    "```md\n" + "word word\n" * 2_000,
)


@pytest.mark.parametrize("text", LONG_CODE, ids=range(len(LONG_CODE)))
def test_open_code_is_searched_once_for_its_end(text, monkeypatch):
    read, make = [], incremental.Fence.from_token

    def count(*args):
        fence = make(*args)
        return replace(fence, closing=CountingPattern(fence.closing, read))

    monkeypatch.setattr(incremental.Fence, "from_token", count)
    monkeypatch.setattr(incremental, "_pool", Here())
    settler = incremental.IncrementalRenderer()
    for end in range(0, len(text), 40):
        settler.view_reply(text[:end])
    assert read
    # Beside each line, the part of one that is there so far, once for each frame.
    assert sum(read) <= 5 * len(text)


@given(TEXTS, STEPS)
@settings(max_examples=100, deadline=None)
def test_open_code_ends_where_a_search_from_its_start_ends(text, steps):
    settler, end = incremental.IncrementalRenderer(), 0
    for step in steps * 20:
        end += step
        settler.settle_text(text[:end])
        fence = settler.state.fence
        if fence:
            for place in (len(text[:end]), len(text), end // 2):
                fresh = replace(fence, places=[]).find_end(text, place)
                assert fence.find_end(text, place) == fresh


@pytest.mark.parametrize("text", ["x" * 41_000 + "\n", "> " * 99 + "deep\n\nEnd\n"])
def test_unformatted_text_is_plain_while_it_is_written(text):
    view = grow(f"One.\n\n{text}", [500]).view_reply(f"One.\n\n{text}")
    assert (view.form, view.pieces) == ("wrap", ())
    assert markdown.render_markdown(f"One.\n\n{text}").startswith('<pre class="wrap">')


def test_formatting_holds_nobody_up(monkeypatch):
    render_part = markdown.render_part

    def slowly(*args):
        assert shown.wait(10 * PATIENCE)
        return render_part(*args)

    monkeypatch.setattr(markdown, "render_part", slowly)
    shown = Event()
    settler = incremental.IncrementalRenderer()
    assert settler.view_reply("One.\n\nTwo\n").tail == "One.\n\nTwo"
    shown.set()
    wait_for(lambda: settler.view_reply("One.\n\nTwo\n").tail == "Two")
