"""Markdown to HTML: nothing live gets through, and no word is lost on the way."""

import re
import time
from html import unescape
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from chatsite.pages import markdown
from chatsite.pages.markdown import ATTRIBUTES, MAX_CHARS, TAGS, render_markdown
from tests.patience import within

ATTACKS = (
    "<script>alert(1)</script>",
    "<ScRiPt src=//evil></sCrIpT>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)><animate onbegin=alert(1)>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<math><mi//xlink:href='data:x,<script>alert(4)</script>'>",
    "<a href=javascript:alert(1)>x</a>",
    "<style>@import '//evil'</style>",
    "<form action=//evil><input name=q></form>",
    "<div hx-get=/c/ hx-trigger=load></div>",
    "<base href=//evil>",
    "<meta http-equiv=refresh content='0;url=//evil'>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\nscript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](vbscript:x)",
    "[x](//evil.example)",
    "[x](\\\\evil.example)",
    "[x](/\\evil.example)",
    "[x](/accounts/logout/)",
    "[x](https:///\\evil)",
    "![x](https://ok.example/?q=secret)",
    "![x][r]\n\n[r]: https://ok.example/p.png",
    "[x](https://ok.example 'a\" onmouseover=alert(1) b')",
    '<https://ok.example/" onmouseover=alert(1)>',
    "`<img src=x onerror=alert(1)>`",
    "```html\n<script>alert(1)</script>\n```",
    '```"><script>alert(1)</script>\nx\n```',
    "| <img src=x onerror=1> |\n|---|\n| <script>1</script> |",
    "<!--><script>alert(1)</script>-->",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "\u2028<script>alert(1)</script>",
)


class Tags(HTMLParser):
    """Every tag and attribute that a browser would see."""

    def __init__(self, html):
        super().__init__()
        self.found = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


@pytest.mark.parametrize("text", ATTACKS)
def test_html_has_only_allowed_tags_and_attributes(text):
    for tag, attributes in Tags(render_markdown(text)).found:
        assert tag in TAGS
        allowed = ATTRIBUTES.get(tag, set()) | {"rel", "target"}
        assert set(attributes) <= allowed | ({"class"} if tag == "pre" else set())
        if "href" in attributes:
            assert attributes["href"].startswith("https://ok.example")


@given(st.text(max_size=200))
@settings(max_examples=150, deadline=None)
def test_html_keeps_to_its_tags_for_any_text(text):
    for tag, attributes in Tags(render_markdown(text)).found:
        assert tag in TAGS
        assert not any(name.startswith(("on", "hx-", "data-")) for name in attributes)


def test_markdown_is_formatted():
    html = render_markdown(
        "**bold** ~~gone~~ `code`\n\n1. one\n2. two\n\n| a |\n|---|\n| 二 |"
    )
    for part in (
        "<strong>bold</strong>",
        "<s>gone</s>",
        "<code>code</code>",
        "<li>two",
    ):
        assert part in html
    assert "<td>二</td>" in html


def test_links_are_marked_as_external():
    html = render_markdown("[x](https://ok.example)")
    assert 'rel="nofollow noopener noreferrer"' in html
    assert 'target="_blank"' in html


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("see https://ok.example/a. And more", "https://ok.example/a"),
        ("(https://ok.example/A_(b)), too", "https://ok.example/A_(b)"),
        ("见https://ok.example/a，好", "https://ok.example/a"),
        ("- **https://ok.example/a?b=1&c=2**", "https://ok.example/a?b=1&c=2"),
    ],
)
def test_addresses_become_links(text, address):
    [(_, link)] = [
        found for found in Tags(render_markdown(text)).found if found[0] == "a"
    ]
    assert link["href"] == address
    assert link["rel"] == "nofollow noopener noreferrer"


@pytest.mark.parametrize(
    "text",
    [
        *("`https://ok.example`", "https://", "https:///ok.example", "ok.example"),
        "[https://other.example](/inside)",
    ],
)
def test_other_texts_become_no_links(text):
    assert "<a href" not in render_markdown(text)


def test_a_link_with_an_address_for_a_name_leads_where_it_says():
    found = Tags(render_markdown("[https://ok.example](https://other.example)")).found
    assert [attributes.get("href") for tag, attributes in found if tag == "a"] == [
        "https://other.example"
    ]


def test_lists_of_tasks_have_boxes():
    html = render_markdown("- [ ] one\n- [x] two [x]\n- [y] three\n\n[x] four")
    task = '<li class="task">'
    for part in (f"{task}☐ one", f"{task}☑ two [x]", "<li>[y] three", "<p>[x] four"):
        assert part in html


def test_columns_of_tables_are_aligned():
    html = render_markdown("| a | b | c |\n| --: | :-: | :-- |\n| 1 | 2 | 3 |")
    for tag, end in (("th", "a b c"), ("td", "1 2 3")):
        first, second, third = end.split()
        assert f'<{tag} class="right">{first}</{tag}>' in html
        assert f'<{tag} class="center">{second}</{tag}>' in html
        assert f">{third}</{tag}>" in html
    assert "style" not in html


def test_a_picture_is_a_link_without_its_mark():
    html = render_markdown("![pic](https://ok.example) Stop\\![x](https://ok.example)")
    assert "<p><a" in html
    assert "Stop!<a" in html


def test_marks_of_footnotes_are_raised_and_the_notes_stay():
    html = render_markdown(
        "As said[^1], and[^23].\n\n[^1]: Smith, *p. 4*\n[^23]: https://ok.example"
    )
    assert "As said<sup>[1]</sup>, and<sup>[23]</sup>." in html
    assert "<p><sup>[1]</sup> Smith, <em>p. 4</em><br>" in html
    assert '<sup>[23]</sup> <a href="https://ok.example"' in html


def test_footnotes_have_names_too():
    html = render_markdown(
        "As said[^note], “so”[^smith-2020][^甲]: yes.\n\n[^note]: Smith, *p. 4*\n"
        "[^smith-2020]: https://ok.example"
    )
    marks = "<sup>[smith-2020]</sup><sup>[甲]</sup>"
    assert f"As said<sup>[note]</sup>, “so”{marks}: yes." in html
    assert "<p><sup>[note]</sup> Smith, <em>p. 4</em><br>" in html
    assert '<sup>[smith-2020]</sup> <a href="https://ok.example"' in html


@pytest.mark.parametrize(
    "text",
    [
        *("[^abc]", "[^0-9]", "`[^1]`", "[^1234]", r"\[^1]", "use [^abc] or ([^abc])"),
        *("x[^a-z]", "x[^abc]+", "x[^abc]*y", "x[^abc]{2}", '"[^abc]"', "/[^abc]/"),
        *("x[^]", "x[^a b]", f"x[^{'n' * 40}]"),
    ],
)
def test_other_brackets_are_no_footnotes(text):
    assert "<sup>" not in render_markdown(text)


def test_typed_text_keeps_its_spaces():
    text = "one  two\n   three \n  - four"
    typed = markdown.render_markdown(text, is_typed=True)
    assert typed == "<p>one  two<br>   three</p>\n<ul>\n<li>four</li>\n</ul>\n"
    assert markdown.render_markdown("    five", is_typed=True) == "<p>five</p>\n"
    assert "<br>\nthree" in render_markdown(text)


@pytest.mark.parametrize(
    ("text", "bold"),
    [
        ("* **单价：**每斤四元", "单价："),
        ("她读**《边城》**很久", "《边城》"),
        ("她说**“好的”**就走", "“好的”"),
        ("**雨停了，**出门", "雨停了，"),
        ("会議は**月曜です。**来て", "月曜です。"),
        ("이것은**도구(tool)**입니다", "도구(tool)"),
        ("用**`ls -l`**看", "<code>ls -l</code>"),
        ("是**100%**吗", "100%"),
        ("ＡＢ**（注）**ＣＤ", "（注）"),
        ("ｶﾅ**「ｱ」**ｲ", "「ｱ」"),
        ("a**乙。**b", "乙。"),
        ("葛\U000e0100**。丙**丁", "。丙"),
    ],
)
def test_emphasis_stands_beside_full_width_marks(text, bold):
    assert f"<strong>{bold}</strong>" in render_markdown(text)


def test_other_emphasis_stands_beside_full_width_marks_too():
    assert "<em>「甲」</em>" in render_markdown("这*「甲」*那")
    assert "<s>（旧）</s>" in render_markdown("价~~（旧）~~新")


@pytest.mark.parametrize("text", ["** 甲：**乙", "甲 * 乙 * 丙", "甲_乙_丙", "2 ** 三"])
def test_other_stars_beside_chinese_are_text(text):
    assert not re.search("<strong>|<em>", render_markdown(text))


@given(st.text("ab 1*_~.,!(“”«»—€é\u00a0Жš😀✅⌚\u0301\n`", max_size=40))
@settings(max_examples=400, deadline=None)
def test_text_without_chinese_is_rendered_by_commonmark(text):
    usual = MarkdownIt("commonmark").enable("strikethrough")
    ours = MarkdownIt("commonmark").enable("strikethrough")
    ours.inline = markdown.InlineParser()
    ours.configure("commonmark").enable("strikethrough")
    assert ours.render(text) == usual.render(text)


def test_small_tags_in_pairs_are_formatting():
    html = render_markdown("H<sub>2</sub>O, m<SUP>3</SUP>, <kbd>Esc</kbd> <u>**a**</u>")
    for part in ("H<sub>2</sub>O", "m<sup>3</sup>", "<kbd>Esc</kbd>"):
        assert part in html
    assert "<u><strong>a</strong></u>" in html


@pytest.mark.parametrize(
    "text",
    [
        *("<sub>2", "2</sub>", "<sub></sub>", "<sub class=x>2</sub>", "`<sub>2</sub>`"),
        *("<div>x</div>", r"\<sub>2</sub>", "<sub>2\n\n</sub>"),
    ],
)
def test_other_tags_are_text(text):
    assert "&lt;" in render_markdown(text)


def test_a_tag_breaks_the_line():
    html = render_markdown(
        "| a<br>b | c <br/> d |\n|---|---|\n| e<BR />f | g |\n\nh<br>i"
    )
    assert "a<br>\nb" in html
    assert "c<br>\nd" in html
    assert "e<br>\nf" in html
    assert "h<br>\ni" in html


@pytest.mark.parametrize(
    "text", ["put a <br> there", "`a<br>b`", r"a\<br>b", "a<br x>b"]
)
def test_a_tag_that_is_talked_about_is_text(text):
    assert "&lt;br" in render_markdown(text)


def test_typed_tags_stay_as_they_are():
    html = render_markdown("a<br>b <b>c</b>", is_typed=True)
    assert html == "<p>a&lt;br&gt;b &lt;b&gt;c&lt;/b&gt;</p>\n"


NESTED = "# A\n```bash\nls\n```\nmore\n~~~\n```py\n```\n"


@pytest.mark.parametrize("prefix", ["", "> ", "  "])
@pytest.mark.parametrize("info", ["md", "Markdown", "mdx"])
def test_code_inside_of_markdown_does_not_end_it(info, prefix):
    lines = f"```{info}\n{NESTED}```\n**on**".split("\n")
    html = render_markdown("\n".join(prefix + line for line in lines))
    assert html.count("<pre>") == 1
    assert f"{NESTED}</code></pre>" in html
    assert "<strong>on</strong>" in html


@pytest.mark.parametrize(
    "text",
    [
        "```text\n```py\nx\n```\n**on**",
        "````md\n```py\nx\n````\n**on**",
        "```md\n``` is a fence\nx\n```\n**on**",
        "```md\n~~~py\nx\n```\n**on**",
    ],
)
def test_other_code_ends_with_its_first_closing_line(text):
    assert "<strong>on</strong>" in render_markdown(text)


def test_line_breaks_of_the_text_are_kept():
    assert "<br>" in render_markdown("one\ntwo")


DEEP = (
    *("> " * depth + "word" for depth in (10, 50, 99, 101, 500, 5_000)),
    *("\n".join("  " * n + f"- item{n}" for n in range(depth)) for depth in (10, 60)),
    "*" * 3_000 + "word",
    "[" * 30_000 + "word",
    "x[^n" * 1_999 + "word",
    "x[^" + "n-" * 15_000 + "word",
    "((" * 15_000 + "word",
    "x" + "`" * 30_000 + "word",
    "<b>" * 13_000 + "word</b>",
    "<b><i><u>" * 3_000 + "word" + "</u></i></b>" * 1_000,
    "x" + " " * 39_000 + "word",
    "```MD\n" + "```py\nx\n```\n" * 3_300 + "word",
    "```MD\n" + "```py\n" * 3_000 + "```\n" * 3_000 + "word",
    "**「" * 13_000 + "word",
    "|a" * 15_000 + "\n" + "|-" * 15_000 + "\n|word",
)


@pytest.mark.parametrize("text", DEEP, ids=range(len(DEEP)))
def test_deep_nesting_loses_no_word_and_takes_little_time(text):
    with within(2, time.thread_time):
        html = markdown.render_uncached(text)
    shown = unescape(re.sub(r"<[^>]*>", "", html))
    words = set(re.findall(r"[a-z]+\d*", text))
    assert words <= set(re.findall(r"[a-z]+\d*", shown))


def test_long_text_is_shown_unformatted():
    html = render_markdown("**x** " * (MAX_CHARS // 6 + 1))
    assert html.startswith('<pre class="wrap">**x**')


def test_unformatted_text_is_escaped():
    html = render_markdown("<script>" + "x" * MAX_CHARS)
    assert "<script>" not in html


class TestCache:
    def test_a_text_is_formatted_once(self, monkeypatch):
        done = []
        original = markdown.render_part
        monkeypatch.setattr(
            markdown,
            "render_part",
            lambda text, links, **_: done.append(text) or original(text, links),
        )
        assert markdown.render_markdown("*once* only") == markdown.render_markdown(
            "*once* only"
        )
        assert done == ["*once* only"]

    def test_many_long_texts_do_not_fill_the_memory(self):
        for number in range(100):
            markdown.render_markdown(f"{number}" + "x" * 200_000)
        assert markdown.cache.currsize <= markdown.CACHE_BYTES
