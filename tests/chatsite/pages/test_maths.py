"""Formulas are drawn, within bounds; languages of code keep their names."""

import re
import sys
import time
from html import unescape

import pytest

from chatsite.pages import incremental, maths
from chatsite.pages.markdown import render_markdown, render_uncached
from tests.patience import within


@pytest.mark.parametrize(
    ("formula", "drawn"),
    [
        ("$x_1 * y_2 * z$", "<msub><mi>x</mi><mn>1</mn></msub><mo>*</mo>"),
        (r"\(a_b < c\)", "<mo>&lt;</mo><mi>c</mi>"),
        (r"\[\sum_{i=1}^n x_i\]", '<math display="block"><mrow><munderover><mo>∑'),
        ("$$a = b$$", '<math display="block">'),
        (r"$\alpha \pm 1$", "<mi>α</mi><mo>±</mo>"),
        (r"$\frac{1}{2}$", "<mfrac><mrow><mn>1</mn></mrow><mrow><mn>2</mn></mrow>"),
        (r"$\mathcal{GP}$", '<mi mathvariant="script">𝒢</mi>'),
        (r"$\begin{aligned}a &= b\end{aligned}$", '<mtd columnalign="right"><mi>a'),
        (r"$\begin{equation*}a\end{equation*}$", "<mrow><mi>a</mi></mrow>"),
        (r"\begin{equation*}x_1 * y * z\end{equation*}", "<mn>1</mn></msub><mo>*</mo>"),
        ("\\begin{align}a &= b \\\\\n c &= d\\end{align}", "<mtr><mtd"),
        (r"\begin{equation}a\label{eq:a_1}\end{equation}", "<mrow><mi>a</mi></mrow>"),
        (r"$\text{if }x$", "<mtext>if&nbsp;</mtext><mi>x</mi>"),
    ],
)
def test_formula_is_drawn(formula, drawn):
    html = render_markdown(f"So {formula} holds.")
    assert drawn in html
    assert html.startswith("<p>So <math display=")


@pytest.mark.parametrize(
    "formula",
    [
        r"$\unheard{x}$",
        r"$\frac{1}$",
        r"\(x^2^3\)",
        "$$ $$",
        r"$\def\a{b}\a$",
        r"$\newcommand{\a}{b}\a$",
        r"\[\begin{nonsense}x\end{nonsense}\]",
        r"$\left( x$",
        r"\begin{align*}\unheard{x} * a * b\end{align*}",
    ],
)
def test_undrawable_formula_stays_as_written(formula):
    html = render_markdown(f"So {formula} holds.")
    shown = re.search(r'<code class="math">(.*?)</code>', html, re.DOTALL)
    assert unescape(shown[1]) == formula


def test_a_formula_on_lines_of_its_own_is_a_block():
    html = render_markdown("Look:\n$$\na = b\n- c_1\n+ d_1\n$$\n\nand **on**")
    assert '<p><math display="block"><mrow><mi>a</mi>' in html
    assert "<strong>on</strong>" in html
    source = "$$\na = b\n- \\c_1\n$$"
    assert f'<pre><code class="math">{source}</code></pre>' in render_markdown(source)


ALIGNED = "a &= b \\\\\n- c_1 &= d \\\\\n+ e &= f"


@pytest.mark.parametrize("name", ["align", "align*", "gather*", "eqnarray"])
def test_an_environment_for_formulas_needs_no_dollars(name):
    html = render_markdown(
        f"Look:\n\\begin{{{name}}}\n{ALIGNED}\n\\end{{{name}}}\nand **on**"
    )
    assert '<p>Look:</p>\n<p><math display="block"><mrow><mtable' in html
    assert html.count("<mtr>") == 3
    assert "<p>and <strong>on</strong>" in html


@pytest.mark.parametrize(
    "text",
    [
        r"\begin{align}a\end{align*} on",
        r"\begin{itemize}a\end{itemize} on",
        "\\begin{equation}\na\n\nb\n\\end{equation} on",
        r"`\begin{align}a\end{align}` on",
        "    \\begin{align}a\\end{align}",
    ],
)
def test_unclosed_or_other_environment_is_text(text):
    html = render_markdown(text)
    assert "math" not in html
    assert "\\begin{" in html


@pytest.mark.parametrize(
    "formula",
    [
        r"\text{<img src=x onerror=alert(1)>}",
        r"\text{&lt;script&gt;alert(1)&lt;/script&gt;}",
        r"\href{javascript:alert(1)}{x}",
        r"\style{background:url(//evil)}{x}",
        r"\class{message}{x}",
        r"\color{white}{x}",
        r"\colorbox{black}{x}",
        r"\unicode{x3c}img src=x onerror=alert(1)\unicode{x3e}",
        r"\hspace{9999em}x",
        r"\rule{9999em}{9999em}",
        r'\genfrac(){1" onclick="alert(1)}{0}{a}{b}',
        r"\operatorname{<b>x</b>}",
    ],
)
def test_a_formula_brings_nothing_but_its_layout(formula):
    html = render_markdown(f"${formula}$").replace('<code class="math">', "").lower()
    tags = " ".join(re.findall(r"<[^>]*>", html))
    for part in (
        "<img",
        "<script",
        "<b>",
        " href",
        " style",
        " class",
        "color",
        "99em",
    ):
        assert part not in tags
    assert not re.search(r"<\w+[^>]* on\w+=", html)


# The greatest of these asked for 2 to the power of 40 parts.
HOSTILE = {
    "braces": "{" * 490 + "}" * 490,
    "doubled": r"\sideset{_a}{_b}{" * 40 + "x" + "}" * 40,
    "defined": r"\def\a{\b\b}\def\b{\c\c}" * 20 + r"\a",
    "fractions": r"\frac{1}{" * 80 + "x" + "}" * 80,
    "over": r"a\over " * 120 + "x",
    "matrices": r"\begin{matrix}a&b\\" * 30 + r"\end{matrix}" * 30,
    "open": r"\left(" * 150,
    "sizes": r"\tiny " * 150 + "x",
    "name": r"\operatorname{" + "* " * 450,
    "logos": r"\LaTeX" * 150,
    "ampersands": "&" * 900,
    "surrogates": r"\unicode{d800}\unicode{0}\unicode{110000}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_formula_costs_little(name):
    text = f"${HOSTILE[name]}$"
    count = 0

    def note(*_):
        nonlocal count
        count += 1

    sys.setprofile(note)
    try:
        html = render_uncached(text)
    finally:
        sys.setprofile(None)
    assert count < 300_000
    assert len(html) < 200 * len(text) + 1_000
    html.encode()


def test_formulas_are_drawn_up_to_a_limit():
    formula = "$" + "x + 1 " * 100 + "+ 1$"
    most = maths.MAX_TEX // (len(formula) - 2)
    html = render_uncached("\n\n".join([formula] * (most + 5)))
    assert html.count("<math") == most
    assert html.count(f'<code class="math">{formula}</code>') == 5


def test_a_reply_that_grows_is_drawn_as_far_as_the_whole(monkeypatch):
    monkeypatch.setattr(maths, "MAX_TEX", 20)
    settler, text = incremental.IncrementalRenderer(), "$a + b$\n\n" * 8
    for end in range(0, len(text) + 1, 9):
        settler.settle_text(text[:end])
    settled = str(settler.view_reply(text).join_html())
    assert settled.count("<math") == 4
    assert render_uncached(text).startswith(settled)


@pytest.mark.parametrize(
    "text",
    [
        *("from $5 to $10 today", "US$ 5 and A$ 6", "$ x $", "a $$ b", r"\(open"),
        *("US$5, A$ 6", "as x$y$z"),
    ],
)
def test_money_is_no_formula(text):
    assert "math" not in render_markdown(text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "set LIB=$ROOT/lib:$LIB",
            "$SEEN_ROWS/$ALL_ROWS rows",
            "$A_1/$B_2",
            "a $$ $$$",
        ),
        *("SUMIF($B:$C,3)", "SUM($B$2:$B$8)", "$GOOG/$IBM,$INTC", "$env:TMP\\a:$PATH"),
        *(
            "$('#x').html()+$('#y').text()",
            "$http.$get()",
            "$i=$j",
            "($a,$b)",
            "$x_1,$y_1",
        ),
        *("kill $$; echo $$", "cheap $$–$$$", "单价20$，共30$。", "costs 5$, not 10$."),
        *(
            "$5 (or A$)",
            "$5 and 10$ more",
            "ends with foo$ or bar$ here",
            "$HOME$ is odd",
        ),
        *(
            "cp $SRC/ $DST/$(date)",
            "$_GET['a'].$_POST['b']",
            "$BTC–$ETH",
            "U$/A$, $/€, £/$.",
        ),
    ],
)
def test_dollars_of_other_languages_are_no_formula(text):
    html = render_markdown(text)
    assert "math" not in html
    assert unescape(re.sub(r"<[^>]*>", "", html)).strip() == text


@pytest.mark.parametrize(
    "formula",
    [
        *(
            "$x$",
            "$x'$",
            "$n!$",
            "$5$",
            "$2x + 3y = 7$",
            "$f(x)$",
            "$F=ma$",
            "$0 < x < 1$",
        ),
        *("$a, b$", "$|x|$", "$[0, 1]$", "$α$", "$x_i$", "$x_{12}$", "$E=mc^2$", "$<$"),
        *(
            r"$\alpha$",
            r"$\mathbb{R}^+$",
            "$O(n log n)$",
            "$$x$$",
            "$$F = ma$$",
            "$A_1$",
        ),
        *("$$速度 = 距离$$", "$x^*$", r"\(word\)", "$10^{-3}$", "$dy/dx$"),
    ],
)
def test_usual_formulas_are_drawn(formula):
    for text in (f"So {formula}, yes", f"设{formula}的", f"({formula})"):
        assert "<math" in render_markdown(text)


def test_a_formula_can_have_an_ending():
    assert "</math>th" in render_markdown("the $n$th term")


def test_code_is_no_formula():
    html = render_markdown("`$x$` and\n```sh\necho $HOME$PATH$\n```")
    assert "math" not in html
    assert '<code class="language-sh">echo $HOME$PATH$' in html


@pytest.mark.parametrize("info", ['x" onload="y', "a/b", "x" * 30, "<b>", "日本"])
def test_odd_languages_have_no_name(info):
    html = render_markdown(f"```{info}\ntext\n```")
    assert "onload=" not in html.replace("&quot;", '"').split("<pre>")[0]
    assert re.search(r"<code( class=\"language-x&quot;\")?>|<code>", html)


@pytest.mark.parametrize(
    "text",
    [
        *("$" * 39_000, "$a " * 13_000, r"\(" * 19_000, "$$\n" * 13_000, "$x" * 9_000),
        *(r"\begin{align}" * 3_000, "\\begin{align}\n" * 2_800, r"\begin{" * 5_000),
        r"\begin{align}" + r"\end{align" * 3_500,
        r"\begin{equation}\label{" * 1_700 + r"\end{equation}",
        "\\begin{align}\n\\end{align*}\n" * 1_400,
    ],
)
def test_hostile_formula_takes_little_time(text):
    # Of this thread alone: a busy machine makes nothing here slower.
    with within(2, time.thread_time):
        render_uncached(text)
