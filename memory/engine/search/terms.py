"""The words that a search compares, for English, Chinese and the like."""

import re
from datetime import datetime
from functools import lru_cache

# A text with fewer different words has no topic of its own: "Yes, go on."
LEAST_WORDS = 4

WORD = re.compile(r"[^\W_]+")
CHINESE = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+")
STOP_WORDS = frozenset(
    WORD.findall(
        """
        a about after all also am an and any are as at be because been before
        being but by can could did do does doing don during each for from had
        has have having he her here hers him his how i if in into is it its
        itself just ll m me might more most my no not now of off on once only or
        other our ours out over own re s same she should so some such t than
        that the their theirs them then there these they this those through to
        too under until up us ve very was we were what when where which while
        who whom whose why will with would you your yours
        的 了 是 我 你 吗 什么
        """
    )
)


def extract_terms(text: str) -> list[str]:
    """Stemmed words without stop words; of Chinese the pairs of characters."""
    text = text.casefold()
    words = (stem_word(word) for word in WORD.findall(CHINESE.sub(" ", text)))
    pairs = (
        run[i : i + 2]
        for run in CHINESE.findall(text)
        for i in range(max(len(run) - 1, 1))
    )
    return [term for term in (*words, *pairs) if term not in STOP_WORDS]


@lru_cache(maxsize=50_000)
def stem_word(word: str) -> str:
    """Enough for plurals and tenses: hikes, hiked and hiking become one term."""
    if len(word) <= 3 or word in STOP_WORDS:
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    for ending in ("ing", "ed", "es", "s"):
        root = word.removesuffix(ending)
        if root != word and len(root) >= 3 and not root.endswith("s"):
            word = root
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls":
        return word[:-1]
    return word.removesuffix("e") if len(word) > 3 else word


def date_terms(date: datetime | None) -> list[str]:
    return extract_terms(f"{date:%d %B %Y %A}") if date else []


def measure_term_distance(text: str, other: str) -> float | None:
    """The share of the different words of a text that another one does not have, from 0
    to 1; None if it has too few words to tell."""
    words = set(extract_terms(text))
    if len(words) < LEAST_WORDS:
        return None
    return len(words.difference(extract_terms(other))) / len(words)
