"""Summaries and titles without a model: sentences that carry facts, word for word.

Deterministic. Each text may begin with who said it ("User: ", "Assistant: "), and every
line of a summary does so again: no text can put words into another mouth.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest

from memory.engine.blank import drop_fences

MAX_LINE_CHARS = 240
MAX_GREETING_CHARS = 8

SPEAKER = re.compile(r"((?:User|Assistant|Tool)(?: \([\d-]{1,10}\))?: )")
# A line of a summary that has a form: its time and topic stand before who said it.
HEADING = re.compile(r"[\w ]{1,60}[:：]")
ROLE = r"(?:(?:User|Assistant|Tool)(?: \(|:)|(?:用户|助手|工具)[（：])"
ENTRY = re.compile(
    rf"(?:- )?(?:(?:\[[\d :-]{{10,16}}\] )*(?:(?!{ROLE})[\w ]{{1,60}}: )?(?={ROLE}))|- "
)
# Who said it, in summaries of what was said in Chinese.
CHINESE_SPEAKERS = {"User": "用户", "Assistant": "助手", "Tool": "工具"}
IN_ENGLISH = re.compile(
    r"^(- )?(User|Assistant|Tool)(?: \(([\d-]{1,10})\))?: ", re.MULTILINE
)
IN_CHINESE = re.compile(r"(用户|助手|工具)(?:（([\d-]{1,10})）)?：")
SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])\s*|\n+")
PERSONAL = re.compile(
    r"\b(?:i'm|i am|my|mine|call me|remember"
    r"|i(?:'ve| also| really| just| always| never)?"
    r" (?:like|love|hate|prefer|live|work|want|need|have|bought|moved|was|will))\b"
    r"|我(?:叫|是|的|喜欢|爱|讨厌|住|想|要|在|有|今年)|叫我|记住|记得",
    re.IGNORECASE,
)
FACT = re.compile(
    r"\d|(?<=[a-z,;] )[A-Z][a-z]+|[《“@]|https?:"
    r"|[一二三四五六七八九十百千万两](?:年|月|日|号|点|元|块|岁|个)"
)
QUESTION_START = re.compile(
    r"\W*(?:what|who|whom|whose|where|when|which|why|how|do|did|does|is|are|was|were|"
    r"can|could|will|would|should|tell me|remind me)\b",
    re.IGNORECASE,
)
QUESTION_END = re.compile(
    r"[?？]\W*$|(?:什么|哪|几点|几个|几岁|多少|怎么|是谁)[^。！]*$|(?:吗|呢)\W*$"
)
# Only the ends of a text are looked at: a long hostile one would take seconds.
MAX_QUESTION_CHARS = 200
# What a result quotes stands between marks, such as <message n="8" role="user">.
QUOTE_MARK = re.compile(r"</?[a-z][\w-]{0,40}(?: [^<>]{0,200})?>")
# Means nothing any more where the messages are not at hand.
MESSAGE_NUMBER = re.compile(r"\bmessages? \d|第 ?\d+")
NEW_FACT = re.compile(r"\d[\w.:,-]*|(?<=[a-z,;] )[A-Z][a-z]+")

GREETING = re.compile(
    r"^(?:(?:hi|hello|hey|good (?:morning|evening|day))\b|你好|您好|嗨)"
    r"[^,.!，。！]{0,20}[,.!，。！]+\s*",
    re.IGNORECASE,
)
FILLER = re.compile(
    r"^(?:please|can you|could you|would you|i would like to|i want to|i'd like to|"
    r"(?:i am|i'm)(?= \w+ing\b)|help me(?: to)?|tell me(?: about)?|"
    r"请问?|帮我|我想|我要|能不能|可以)\s*",
    re.IGNORECASE,
)
CLAUSE_END = re.compile(r",\s+(?:and|but|so)\s+|[，；;]\s*")
CHINESE = re.compile(r"[\u3400-\u9fff]")
MAX_TITLE_CHARS, MAX_TITLE_WORDS, MAX_CHINESE_TITLE_CHARS = 60, 7, 16
# What a title that was cut does not end with.
HALF_WORD = re.compile(r"(?<=[^a-z0-9])[a-z0-9]{2,16}$", re.I)
LOOSE_END = re.compile(r"(?:\s+(?:an?|the|in|on|at|of|for|to|and|or|with|by))+$", re.I)


def split_sentences(text: str) -> list[str]:
    """Sentences of English or Chinese text, without surrounding space."""
    return [part.strip() for part in SENTENCE_END.split(text) if part.strip()]


def read_lines(summary: str) -> list[str]:
    """Return the lines of a summary without the marks of its form."""
    lines = [line for line in summary.splitlines() if not HEADING.fullmatch(line)]
    said = (ENTRY.sub("", line, count=1) for line in lines)
    return [_name_in_english(line) for line in said]


def _name_in_english(line: str) -> str:
    """Return a line of a Chinese summary with its speaker as in a request."""
    if not (named := IN_CHINESE.match(line)):
        return line
    role = next(role for role, name in CHINESE_SPEAKERS.items() if name == named[1])
    day = f" ({named[2]})" if named[2] else ""
    return f"{role}{day}: {line[named.end() :]}"


def name_in_chinese(text: str) -> str:
    """Return the lines of a summary with their speakers in Chinese."""

    def name(found: re.Match[str]) -> str:
        day = f"（{found[3]}）" if found[3] else ""
        return f"{found[1] or ''}{CHINESE_SPEAKERS[found[2]]}{day}："

    return IN_ENGLISH.sub(name, text)


def is_question(text: str) -> bool:
    head, tail = text[:MAX_QUESTION_CHARS], text[-MAX_QUESTION_CHARS:]
    return bool(QUESTION_START.match(head) or QUESTION_END.search(tail))


def is_personal(sentence: str) -> bool:
    """Return True if the user states something about themselves."""
    has_mark = PERSONAL.search(sentence.replace("’", "'"))
    return bool(has_mark) and not is_question(sentence)


def summarize_extractively(
    texts: Sequence[str], *, max_tokens: int, previous: Sequence[str] = ()
) -> str:
    """Return the sentences worth keeping, in order, in at most `max_tokens` tokens.

    What users say of themselves comes first, then facts, then the user's other first
    sentences. Where room ends, both the oldest and the newest have a place. `previous`:
    summaries that this one replaces.
    """
    lines = [line for summary in previous for line in read_lines(summary)]
    ranks: dict[str, int] = {}
    for line, rank in _rank_lines([*lines, *texts]):
        ranks.setdefault(line, rank)
    budget = max_tokens * 4
    kept = set()
    for rank in (4, 3, 2, 1):
        for line in _from_both_ends([line for line in ranks if ranks[line] == rank]):
            size = len(f"{line}\n".encode("utf-8", "replace"))
            if size <= budget:
                budget -= size
                kept.add(line)
    if not kept:
        # A greeting, or the beginning of it, is better than nothing.
        first = next(iter(ranks), "").encode("utf-8", "replace")
        return first[: max_tokens * 4].decode("utf-8", "ignore")
    return "\n".join(line for line in ranks if line in kept)


def _rank_lines(texts: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield each sentence that may stay, with its speaker, and its rank."""
    known = ""
    for text in texts:
        match = SPEAKER.match(text)
        speaker = match.group() if match else ""
        is_user = not speaker.startswith(("Assistant", "Tool"))
        said = text[len(speaker) :]
        if speaker.startswith("Tool"):
            said = QUOTE_MARK.sub("\n", said)
        for position, sentence in enumerate(split_sentences(said)):
            rank = _rank_sentence(
                sentence, known, is_user=is_user, is_first=position == 0
            )
            if rank is not None:
                line = speaker + sentence
                is_long = len(line) > MAX_LINE_CHARS
                yield line[: MAX_LINE_CHARS - 1] + "…" if is_long else line, rank
            known += sentence + " "


def _rank_sentence(
    sentence: str, known: str, *, is_user: bool, is_first: bool
) -> int | None:
    """Return the rank of a sentence; None: not worth keeping.

    4: users about themselves, 3: a fact of the user, 2: one that the assistant brought
    up, 1 and 0: first sentences of either.
    """
    if is_user and is_personal(sentence):
        return 4
    is_fact = FACT.search(sentence) and not is_question(sentence)
    if is_fact and is_user:
        return 3
    is_new = any(fact not in known for fact in NEW_FACT.findall(sentence))
    if is_fact and is_new and not MESSAGE_NUMBER.search(sentence):
        return 2
    if not is_first:
        return None
    # What was asked was answered; hellos say nothing.
    is_worth_it = len(sentence) > MAX_GREETING_CHARS and not is_question(sentence)
    return int(is_user and is_worth_it)


def _from_both_ends(lines: list[str]) -> Iterator[str]:
    """Return the oldest, newest, second oldest, second newest, ..."""
    middle = (len(lines) + 1) // 2
    pairs = zip_longest(lines[:middle], reversed(lines[middle:]))
    return filter(None, chain.from_iterable(pairs))


def make_title(text: str) -> str:
    """Return the first words of a message that say something."""
    text = " ".join(drop_fences(text).split())
    sentences = split_sentences(GREETING.sub("", text))[:3]
    clauses = [part for each in sentences for part in CLAUSE_END.split(each)]
    plain = [FILLER.sub("", FILLER.sub("", clause)) for clause in clauses]
    title = max(plain, key=len, default="").rstrip(".!?。！？,，:： ") or text
    if CHINESE.search(title):
        if len(title) > MAX_CHINESE_TITLE_CHARS:
            title = HALF_WORD.sub("", title[: MAX_CHINESE_TITLE_CHARS + 1])
        return title[:MAX_CHINESE_TITLE_CHARS].rstrip("，。、, ")
    words = title.split()
    title = " ".join(words[:MAX_TITLE_WORDS])[:MAX_TITLE_CHARS]
    if len(words) > MAX_TITLE_WORDS:
        title = LOOSE_END.sub("", title)
    title = title.rstrip(",;:")
    return title[:1].upper() + title[1:]
