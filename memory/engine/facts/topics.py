"""Topics on which a user has one fact: a later one replaces the earlier ones."""

import re
from collections.abc import Sequence

from ..rules.grammar import compile_any

TOPICS = {
    "home": compile_any(
        r"\bI (?:\w+ )?(?:live|reside|moved) (?:just )?(?:in|at|near|to|outside)\b",
        r"\bI(?:['’]ve| have) (?:lived|been living) in\b",
        r"\bI(?:['’]m| am) (?:\w+ )?(?:based|living) in\b",
        "我[^，]{0,8}(?:住在|定居|搬到|搬来|居住在|生活在)",
    ),
    "name": compile_any(
        r"\bmy (?:full )?name is\b|\bI(?:['’]m| am) called\b|\bI go by\b",
        "我(?:的)?(?:名字)?(?:叫|姓)|我的名字",
    ),
    "age": compile_any(
        r"\bI(?:['’]m| am) (?:\w+ )?\d{1,3}\W*$|\byears old\b|\bmy age\b",
        "我[^，]{0,6}岁",
    ),
    "birthday": compile_any(r"\bmy birthday\b", "我的?生日"),
    "diet": compile_any(
        r"\b(?:vegan|vegetarian|pescatarian)\b|\beat (?:meat|everything)\b",
        "吃素|素食|吃肉|吃荤|荤素",
    ),
    "work": compile_any(
        r"\bI (?:\w+ )?work (?:as|for|at)\b|\bmy (?:job|profession|occupation) is\b",
        r"\bI(?:['’]m| am) (?:\w+ )?(?:retired|unemployed|self-employed)\b",
        "我的?(?:工作|职业)是|我[^，]{0,4}(?:退休|失业|从事)|我在[^，]{1,12}(?:工作"
        "|上班)",
    ),
    "family": compile_any(
        r"\bI(?:['’]m| am) (?:\w+ )?(?:single|married|divorced|widowed|engaged)\b",
        "我[^，]{0,4}(?:单身|结婚|已婚|未婚|离婚)",
    ),
    "language": compile_any(
        r"\bmy (?:mother tongue|(?:first|native) language)\b", "我的?母语"
    ),
    "pronouns": compile_any(r"\bmy pronouns\b"),
    "time zone": compile_any(
        r"\btime ?zone\b", "时区|我在东?西?[一二三四五六七八九十]区"
    ),
    "height": compile_any(
        r"\bI(?:['’]m| am) [\w. ]{0,20}\btall\b|\bmy height\b", "身高"
    ),
    "weight": compile_any(r"\bI weigh\b|\bmy weight\b", "体重"),
}
FAVOURITE = re.compile(
    r"\bmy favou?rite (\w+)|我最喜欢的([^，是]{1,8})是", re.IGNORECASE
)


def find_topics(fact: str) -> set[str]:
    found = {name for name, pattern in TOPICS.items() if pattern.search(fact)}
    if best := FAVOURITE.search(fact):
        found.add(f"favourite {(best[1] or best[2]).casefold()}")
    return found


def find_contradicted(fact: str, known: Sequence[str]) -> list[int]:
    """Return the indices of the known facts that this later one contradicts."""
    said = find_topics(fact)
    return [
        place
        for place, words in enumerate(known)
        if said and words != fact and said & find_topics(words)
    ]
