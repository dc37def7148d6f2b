"""Names and texts: the rules for plain words hold, or the debt falls."""

import json
from collections import Counter

import pytest

from . import plain_words

DEBT = json.loads((plain_words.ROOT / "tests/plain_words.json").read_text())


@pytest.fixture(scope="module")
def findings():
    found = {}
    for kind, path, line, text in plain_words.find_all():
        row = found.setdefault((plain_words.area_of(path), kind), [])
        row.append(f"{path}:{line} {text}")
    return found


@pytest.mark.parametrize("kind", plain_words.KINDS)
def test_debt_in_plain_words_only_falls(findings, kind):
    """Areas have at most as many findings of a kind as their row of the
    table allows.
    """
    grown = {
        area: found
        for (area, each), found in findings.items()
        if each == kind and len(found) > DEBT.get(area, {}).get(kind, 0)
    }
    assert grown == {}, "see CONTRIBUTING.md, Names and words"


@pytest.mark.parametrize(
    ("text", "is_headless"),
    [
        ("What is sent next.", True),
        ("Of a reply: its tokens.", True),
        ("The same for images.", True),
        ("Return what is sent next.", False),
        ("Italic text.", False),
    ],
)
def test_headless_docstrings_are_recognised(text, is_headless):
    assert bool(plain_words.HEADLESS.match(text)) is is_headless


def test_participles_are_distinguished_from_nouns():
    names = ["Kept", "StoredRequest", "Opening", "Feed", "_Asked", "AppSetting"]
    found = [name for name in names if plain_words.is_participle(name)]
    assert found == ["Kept", "Opening", "_Asked"]


def test_private_words_are_found_in_any_case():
    text = "Told of a door; the first person is grammar, a person is not."
    assert Counter(plain_words.PRIVATE.findall(text)) == {
        "Told": 1,
        "door": 1,
        "person": 1,
    }
