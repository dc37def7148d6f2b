"""The words that a search compares, for English, Chinese and the like."""

import re
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache

# A text with fewer different words has no topic of its own: "Yes, go on."
LEAST_WORDS = 4

WORD = re.compile(r"[^\W_]+")
CHINESE = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+")
# They stand inside of words: 结婚 is 结了婚 when it is done, and 结的婚 when told of.
PARTICLES = frozenset("的了过着")
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

# What no ending tells: the other forms of common verbs, and of some nouns.
FORMS = """
    become became, begin began begun, bite bit bitten, blow blew blown, bring brought,
    break broke broken, build built, buy bought, catch caught, choose chose chosen,
    come came, deal dealt, draw drew drawn, drink drank drunk, drive drove driven,
    eat ate eaten, fall fell fallen, feed fed, feel felt, fight fought, find found,
    fly flew flown, forget forgot forgotten, freeze froze frozen, get got gotten,
    give gave given, go goes went gone, grow grew grown, hang hung, hear heard,
    hide hid hidden, hold held, keep kept, know knew known, lay laid, lead led,
    leave left, lend lent, lose lost, make made, mean meant, meet met, pay paid,
    ride rode ridden, ring rang rung, rise rose risen, run ran, say said, see saw seen,
    seek sought, sell sold, send sent, shake shook shaken, shoot shot, sing sang sung,
    sit sat, sleep slept, speak spoke spoken, spend spent, stand stood, stick stuck,
    steal stole stolen, swim swam swum, take took taken, teach taught, tell told,
    think thought, throw threw thrown, understand understood, wake woke woken,
    wear wore worn, win won, write wrote written,
    child children, foot feet, man men, mouse mice, person people, tooth teeth,
    woman women
"""
BASES = {
    form: word for word, *forms in map(str.split, FORMS.split(",")) for form in forms
}


def extract_terms(text: str) -> list[str]:
    """Stemmed words without stop words; of Chinese the pairs of characters."""
    text = text.casefold()
    words = (stem_word(word) for word in WORD.findall(CHINESE.sub(" ", text)))
    pairs = (pair for run in CHINESE.findall(text) for pair in _pair_characters(run))
    return [term for term in (*words, *pairs) if term not in STOP_WORDS]


def _pair_characters(run: str) -> Iterator[str]:
    """Each character with the next one, and with the one behind a particle."""
    for i in range(max(len(run) - 1, 1)):
        yield run[i : i + 2]
        if run[i + 1 : i + 2] in PARTICLES and i + 2 < len(run):
            yield run[i] + run[i + 2]


@lru_cache(maxsize=50_000)
def stem_word(word: str) -> str:
    """Enough for plurals and tenses: hikes, hiked and hiking become one term."""
    word = BASES.get(word, word)
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
