"""Words that carry too little to be looked up, in English and Chinese."""

import re
from configparser import ConfigParser
from pathlib import Path

from memory.engine.search.terms import STOP_WORDS

LISTS = ConfigParser(allow_no_value=True, delimiters=("\0",))
LISTS.optionxform = str
LISTS.read(Path(__file__).with_name("words.txt"), "utf-8")


def _list(name: str) -> frozenset[str]:
    return frozenset(" ".join(LISTS[name]).split())


COMMON = STOP_WORDS | _list("common")
PLAIN_NAMES = COMMON | _list("plain names")
FUNCTION_CHARS = frozenset("".join(_list("function characters")))
COMMON_PAIRS = _list("common pairs")
CHINESE = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")


def carries_meaning(run: list[str]) -> bool:
    """Return whether words that two texts share are more than a turn of speech."""
    if not any(map(CHINESE.match, run)):
        rare = {t for t in run if len(t) > 2 and t not in COMMON and not t.isdigit()}
        return len(rare) > 1
    chars = "".join(run)
    if len(run) == 2:
        return chars not in COMMON_PAIRS and not FUNCTION_CHARS & {*chars}
    for pair in COMMON_PAIRS:
        chars = chars.replace(pair, "")
    return sum(char not in FUNCTION_CHARS for char in chars) > 1


def is_edge(token: str) -> bool:
    """Return whether a run of words loses nothing without this at its end."""
    return token in FUNCTION_CHARS or token in STOP_WORDS or not token.isalnum()
