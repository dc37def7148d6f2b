"""The terms that a search compares, for English and Chinese."""

import re
from collections import defaultdict
from collections.abc import Iterator
from configparser import ConfigParser
from datetime import datetime
from functools import cache, lru_cache
from pathlib import Path
from unicodedata import normalize

# A text with fewer different words has no topic: "Yes, go on."
LEAST_WORDS = 4

# A character may have its accent behind it.
WORD = re.compile(r"[^\W_]+(?:[\u0300-\u036f]+[^\W_]*)*")
CHINESE = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+")
# Forms of other letters and digits: full and half width, ligatures.
OTHER_FORMS = re.compile(
    r"[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\uff66-\uff9f\ufb00-\ufb06]+"
)
# Combining accents, and letters that Unicode does not decompose.
ACCENTS = re.compile("[\u0300-\u036f]+")
LETTERS = str.maketrans("øłđðħı", "olddhi")
LETTERS |= str.maketrans({"þ": "th", "æ": "ae", "œ": "oe"})
# The part of a query that is searched for in other forms.
MAX_SPELLED = 500
# Particles inside words: 结婚 is 结了婚 when done, and 结的婚 when reported.
PARTICLES = frozenset("的了过着")
WORDS = ConfigParser(allow_no_value=True, delimiters=("\0",))
WORDS.optionxform = str
WORDS.read(Path(__file__).with_name("words.txt"), "utf-8")
STOP_WORDS = frozenset(" ".join(WORDS["stop"]).split())
BASES = {
    form: word
    for word, *forms in map(str.split, " ".join(WORDS["forms"]).split(","))
    for form in forms
}


def extract_terms(text: str) -> list[str]:
    """Return stemmed words without stop words, and pairs of Chinese characters."""
    text = fold_forms(text)
    words = (stem_word(word) for word in WORD.findall(CHINESE.sub(" ", text)))
    pairs = (pair for run in CHINESE.findall(text) for pair in _pair_characters(run))
    return [term for term in (*words, *pairs) if term not in STOP_WORDS]


# Ligatures, and letters of the width of Chinese ones.
WIDE = (*range(0xFB00, 0xFB07), *range(0xFF10, 0xFF5B))


def fold_forms(text: str) -> str:
    """Return the text in lower case, each letter in one form.

    An accent is composed with its letter.
    """
    if text.isascii():
        return text.lower()
    text = OTHER_FORMS.sub(lambda found: normalize("NFKC", found[0]), text)
    return normalize("NFC", text.casefold())


def _drop_accents(word: str) -> str:
    """Return the word without accents.

    Chinese, Japanese and Korean have none.
    """
    plain = ACCENTS.sub("", normalize("NFD", word.translate(LETTERS)))
    return normalize("NFC", plain)


@lru_cache(maxsize=1_000)
def spell(words: str) -> re.Pattern[str]:
    """Return a pattern for words in all forms that a search treats as equal.

    Other accents, letter cases and widths. Of a long text, only its beginning.
    """
    plain = _drop_accents(fold_forms(words[:MAX_SPELLED]))
    others, parts, at = _list_variants(), [], 0
    while at < len(plain):
        # Two letters can be one: ss and ß, ae and æ.
        pair = plain[at : at + 2]
        joined = others.get(pair, "") if len(pair) == 2 else ""
        spelled = "".join(map(_spell_letter, pair if joined else plain[at]))
        parts.append(f"(?:{spelled}|[{joined}])" if joined else spelled)
        at += 2 if joined else 1
    return re.compile("".join(parts), re.IGNORECASE)


def _spell_letter(letter: str) -> str:
    others = _list_variants().get(letter, "")
    part = f"[{re.escape(letter + others)}]" if others else re.escape(letter)
    return part + "[\u0300-\u036f]*" * (letter.isalpha() and letter < "\u2000")


def list_forms(words: str) -> set[str]:
    """Return words with combining accents, and with those of composed letters."""
    return {words, normalize("NFC", words), normalize("NFD", words)}


@cache
def _list_variants() -> dict[str, str]:
    """Map plain letters to the characters that are forms of them."""
    found: dict[str, str] = defaultdict(str)
    for number in (*range(0xC0, 0x530), *range(0x1E00, 0x2000), *WIDE):
        plain = _drop_accents(fold_forms(chr(number)))
        if len(plain) in (1, 2) and plain != chr(number):
            found[plain] += chr(number)
    return dict(found)


def _pair_characters(run: str) -> Iterator[str]:
    """Yield each character with the next one, and with the one behind a particle."""
    for i in range(max(len(run) - 1, 1)):
        yield run[i : i + 2]
        if run[i + 1 : i + 2] in PARTICLES and i + 2 < len(run):
            yield run[i] + run[i + 2]


@lru_cache(maxsize=50_000)
def stem_word(word: str) -> str:
    """Return the stem of a word: hikes, hiked and hiking become one term.

    Plurals and tenses are enough.
    """
    word = word if word.isascii() else _drop_accents(word)
    word = BASES.get(word, word)
    if len(word) <= 3 or word in STOP_WORDS:
        return word
    if word.endswith(("ies", "ied", "ie")):
        # A movie, movies; a party, parties; but a pie, pies.
        return word[:3] if len(word) == 4 else f"{word.rpartition('ie')[0]}y"
    for ending in ("ing", "ed", "es", "s"):
        root = word.removesuffix(ending)
        if root != word and len(root) >= 3 and (ending != "s" or root[-1] != "s"):
            word = root
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls0123456789":
        return word[:-1]
    return word.removesuffix("e") if len(word) > 3 else word


def date_terms(date: datetime | None) -> list[str]:
    return extract_terms(f"{date:%d %B %Y %A}") if date else []


def measure_term_distance(text: str, other: str) -> float | None:
    """Return the share of a text's different words that another text does not have.

    From 0 to 1; None if the text has too few words to tell.
    """
    words = set(extract_terms(text))
    if len(words) < LEAST_WORDS:
        return None
    return len(words.difference(extract_terms(other))) / len(words)
