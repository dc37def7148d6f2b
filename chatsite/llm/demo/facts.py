"""Facts that people state about themselves, found by pattern: names and values."""

import re
from collections.abc import Sequence

from .statements import Statement

NAME = r"(?P<name>[A-Z][\w'’-]*(?: [A-Z][\w'’-]+){0,2}|[\u4e00-\u9fff·]{2,8})"
STATED_NAMES = [
    re.compile(pattern)
    for pattern in (
        rf"(?i:\bmy (?:first |full |real )?name(?: is|'s|’s)"
        rf"(?: now| actually| really)?) {NAME}",
        rf"(?i:\b(?:call me|i(?: am|'m|’m) (?:called|named)|i go by)) {NAME}",
        r"(?i:\bmy name(?: is|'s|’s)) (?P<name>[a-z][\w'-]*)",
        rf"(?:^|\W)(?i:i'm|i’m|i am|im) {NAME}(?=\W*(?:$|[,.!;(]|and\b|from\b))",
        r"(?i:^\W*(?:hi|hello|hey)\b\W+(?:there\W+)?(?:i'm|i’m|i am|im)) "
        r"(?P<name>[a-z][\w'-]*)\W*$",
        r"我(?:的名字)?(?:叫做?|的名字是|名叫) ?(?P<name>[A-Za-z][\w' -]*[\w]|"
        r"[\u4e00-\u9fff·]{1,4}?)(?=$|\W|今年|来自|住|在|是|喜欢|和)",
        r"(?:请?叫我) ?(?P<name>[A-Za-z][\w'-]*|[\u4e00-\u9fff·]{1,4}?)"
        r"(?=$|\W|吧|就|好)",
    )
]
# "I'm German" and "I'm Sorry" are no introductions.
NO_NAME = re.compile(
    r"(?i:.*(?:ese|ish)|a|an|the|not|sorry|fine|good|great|ok|okay|here|back|sure|glad|"
    r"happy|sad|tired|done|ready|german|american|french|italian|russian|indian|"
    r"canadian|mexican|australian|european|什么.*)"
)
SECOND_PERSON = {
    "i'm": "you're",
    "i am": "you are",
    "i was": "you were",
    "am i": "are you",
    "was i": "were you",
    "myself": "yourself",
    "mine": "yours",
    "my": "your",
    "me": "you",
    "i": "you",
    "我": "你",
    "咱们": "你们",
}
# ASCII only: re.IGNORECASE alone also takes "ı" and "İ" for an "i".
FIRST_PERSON = re.compile(
    r"\b(?ai:i'm|i am|i was|am i|was i|myself|mine|my|me|i)\b|我|咱们"
)


def find_name(text: str) -> str:
    """The name by which people introduce themselves in this sentence, or ""."""
    for pattern in STATED_NAMES:
        match = pattern.search(text)
        if match and not NO_NAME.fullmatch(match["name"]):
            name = match["name"].strip(" '’-")
            return name[:1].upper() + name[1:]
    return ""


def find_value(statements: Sequence[Statement], key: str) -> tuple[str, Statement]:
    """What "my <key> is …" said last, and the statement; raises LookupError."""
    word = re.escape(key)
    pattern = re.compile(
        rf"\bmy (?:\w+ )?{word}(?: is| are| was|'s|’s|:| =) (?P<value>.+)"
        rf"|我的?{word}(?:是|叫|：|:) ?(?P<zh>.+)",
        re.IGNORECASE,
    )
    for statement in reversed(statements):
        if match := pattern.search(statement.text):
            value = match["value"] or match["zh"]
            return to_second_person(value.rstrip(" .!。！")), statement
    raise LookupError(key)


def to_second_person(text: str) -> str:
    """ "I like my dog" -> "you like your dog"."""
    return FIRST_PERSON.sub(
        lambda match: SECOND_PERSON[match.group().lower()], text.replace("’", "'")
    )
