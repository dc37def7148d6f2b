"""Numbers of sources in replies: links where there is such a source, text elsewhere."""

import re
import time

import pytest

from chatsite.pages import citations, markdown
from chatsite.pages.citations import CitedSource
from tests.patience import PATIENCE

CITED = (
    CitedSource(1, "https://example.org/a?b=1&c=2", 'A "title" <b>'),
    CitedSource(12, "https://example.net/", "Twelve"),
)
LINK = re.compile(r'<a href="([^"]+)"[^>]*>([^<]+)</a>')


def links_in(text, cited=CITED):
    html = str(markdown.render_uncached(text, cited=cited))
    return [words for address, words in LINK.findall(html)]


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("It is so [1].", ["[1]"]),
        ("It is so[1][12].", ["[1]", "[12]"]),
        ("It is so [1, 12, 7].", ["1", "12"]),
        ("是这样的【1】，还有[1，12]。", ["【1】", "1", "12"]),
        ("- **so [1]**\n- *so* [12]", ["[1]", "[12]"]),
        ("| a | b |\n|---|---|\n| so [1] | c |", ["[1]"]),
        ("No such source [2], [0], [123456], [-1], [1a], [ 1 ].", []),
        ("`[1]`\n\n```\n[1]\n```", []),
        ("[a link [1] here](https://example.com/)", ["a link [1] here"]),
        ("[1](https://example.com/) \\[1\\]", ["1"]),
        ("https://example.com/[1]", ["https://example.com/[1]"]),
        ("$x[1]$", []),
    ],
)
def test_citation_is_linked(text, links):
    assert links_in(text) == links


def test_an_address_and_a_title_stay_what_they_are():
    html = markdown.render_uncached("So [1].", cited=CITED)
    assert 'href="https://example.org/a?b=1&amp;c=2"' in html
    assert 'title="A &quot;title&quot; &lt;b&gt;"' in html
    assert 'rel="nofollow noopener noreferrer"' in html


@pytest.mark.parametrize("address", ["javascript:alert(1)", "/account/", "https:///x"])
def test_other_addresses_are_no_links(address):
    assert links_in("So [1].", (CitedSource(1, address, "x"),)) == []


def test_a_text_without_sources_is_what_it_was():
    text = "So [1], **so** and `x[1]`. https://example.org/ [^1]"
    assert markdown.render_uncached(text) == markdown.render_uncached(text, cited=())
    assert '<a href="https://example.org/"' in markdown.render_uncached(text)


def test_the_same_text_with_other_sources_is_another():
    one = markdown.render_markdown("So [1].", cited=CITED)
    other = markdown.render_markdown(
        "So [1].", cited=(CitedSource(1, "https://b.org/", ""),)
    )
    assert "example.org" in one
    assert "b.org" in other
    assert "<a" not in markdown.render_markdown("So [1].")


def test_links_of_a_text_are_limited():
    assert len(links_in("So 【1】. " * citations.MOST_LINKS)) == citations.MOST_LINKS
    assert links_in("So 【1】. " * (citations.MOST_LINKS + 1)) == []


@pytest.mark.parametrize(
    "piece", ["[1", "[1]", "[1,", "【1，12】", "[[[[1]]]]", "[1, "]
)
def test_long_texts_take_linear_time(piece):
    text = piece * (40_000 // len(piece))
    begun = time.perf_counter()
    list(citations._find_numbers(text))
    markdown.render_uncached(text, cited=CITED)
    assert time.perf_counter() - begun < 2 * PATIENCE
