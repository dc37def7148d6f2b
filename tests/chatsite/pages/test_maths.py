"""Formulas stay as they were written; languages of code keep their names."""

import re
import time
from html import unescape

import pytest

from chatsite.pages.markdown import render, render_uncached


@pytest.mark.parametrize(
    "formula",
    [
        "$x_1 * y_2 * z$",
        r"\(a_b < c_d\)",
        r"\[\sum_{i=1}^n *x*\]",
        "$$a = b$$",
        r"$\alpha$",
    ],
)
def test_it_leaves_a_formula_as_it_was_written(formula):
    html = render(f"So {formula} holds.")
    shown = re.search(r'<code class="math">(.*?)</code>', html, re.DOTALL)
    assert unescape(shown[1]) == formula


def test_it_leaves_a_formula_on_lines_of_its_own_as_it_is():
    formula = "$$\na = b\n- c_1\n+ d_1\n$$"
    html = render(f"Look:\n{formula}\n\nand **on**")
    assert f'<pre><code class="math">{formula}</code></pre>' in html
    assert "<strong>on</strong>" in html


@pytest.mark.parametrize(
    "text", ["from $5 to $10 today", "US$ 5 and A$ 6", "$ x $", "a $$ b", r"\(open"]
)
def test_money_is_no_formula(text):
    assert "math" not in render(text)


def test_code_is_no_formula():
    html = render("`$x$` and\n```sh\necho $HOME$PATH$\n```")
    assert "math" not in html
    assert '<code class="language-sh">echo $HOME$PATH$' in html


@pytest.mark.parametrize("info", ['x" onload="y', "a/b", "x" * 30, "<b>", "日本"])
def test_odd_languages_have_no_name(info):
    html = render(f"```{info}\ntext\n```")
    assert "onload=" not in html.replace("&quot;", '"').split("<pre>")[0]
    assert re.search(r"<code( class=\"language-x&quot;\")?>|<code>", html)


@pytest.mark.parametrize(
    "text",
    ["$" * 39_000, "$a " * 13_000, r"\(" * 19_000, "$$\n" * 13_000, "$x" * 9_000],
)
def test_it_answers_soon(text):
    # Of this thread alone: a busy machine makes nothing here slower.
    started = time.thread_time()
    render_uncached(text)
    assert time.thread_time() - started < 2
