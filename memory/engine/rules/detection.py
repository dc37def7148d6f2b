"""Standing rules in a user's message, found without a model.

Instructions for all later replies, preferences and constraints of life, in English and
Chinese. A rule is a part of the user's own text. Quotations are not: code, quoted
lines, passages in quotation marks, and everything after "translate this:".
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from ..search.terms import extract_terms
from .patterns import (
    CONDITION,
    CONSTRAINTS,
    ENDS,
    INSTEAD,
    INSTRUCTIONS,
    NEGATIONS,
    POLITE,
    PREFERENCES,
    QUESTION,
    RELEASES,
    SLOTS,
)
from .wishes import find_wish, is_chinese_about_one_text, is_reported

# Of a longer text only the beginning and the end are read: there are no rules in the
# middle of a document.
READ_CHARS = 4_000
SENTENCE_CHARS = 600
# Of more sentences the first and the last are read.
MOST_SENTENCES = 200
# A longer rule is cut at a comma.
MAX_CHARS = 300
# How far behind its beginning the end of a rule is searched for: a later end changes
# nothing, as the rule is cut before it.
END_CHARS = MAX_CHARS + SENTENCE_CHARS
# Rules of one message.
MOST = 5
# The share of the words of a contradiction that the rule must have, too.
ALIKE = 0.5
# A rule of at most this many words is recognised by one of them.
FEW_WORDS = 4
CANCELLING_CHARS = 120

SENTENCE = re.compile(
    r"[^.!?。！？；;\n]+(?:[.!?](?=\S)[^.!?。！？；;\n]+)*[.!?。！？；;]*"
)
FENCE = re.compile(r"^\s*(```|~~~)")
# Full stops that do not end a sentence.
SHORT = re.compile(r"\b(?:e\.g|i\.e|etc|vs|approx|Dr|Mr|Mrs|Ms|Prof)\.(?=\s)")
QUOTE = re.compile(r"\"[^\"\n]{1,400}\"|“[^”\n]{1,400}”|「[^」\n]{1,400}」|`[^`\n]+`")
# Announces that the text behind it is the user's material.
HERE = re.compile(
    r"\b(?:translate|proofread|summari[sz]e|rewrite|rephrase|correct|fix|review|check"
    r"|text|article|e-?mail|letter|following|story|manual|document|log|output|says?)\b"
    r"[^:\n]{0,80}:|(?:翻译|校对|总结|润色|改写|检查|文章|邮件|下面|以下|写着|原文)"
    r"[^：:\n]{0,40}[：:]",
    re.IGNORECASE,
)
CLAUSE_END = re.compile(
    r"(?:,|(?<!\s))\s++(?:(?:so|and|but)\s++)*+(?:can|could|would|will) you\b"
    r"|[,，]\s*(?:but |and )?(?:how|what|which|do you|any|where|is it|should|maybe"
    r"|considering)\b|,? (?:and |but )I(?:['’]m| was| am) (?:wondering|not sure)\b"
    r"|[，,]\s*(?:你?能|可以|怎么|如何|请问)"
)
CLAUSE_START = re.compile(r"[,，;；]\s*(?:and|so|but|because|所以|但是?|而且)?\s*")


@dataclass(frozen=True, slots=True)
class RuleSpan:
    """The place of a rule in a text, from `start` to `end`.

    `kind`: "instruction", "preference" or "constraint".
    """

    start: int
    end: int
    kind: str


def find_rules(text: str) -> list[RuleSpan]:
    """Return the rules in a user's message, in their order.

    At most MOST, none longer than MAX_CHARS characters.
    """
    found: list[RuleSpan] = []
    masked = mask_quotes(text)
    for start, end in split_sentences(masked):
        if rule := _read_rule(masked, start, end):
            found.append(rule)
        if len(found) == MOST:
            break
    return found


def mask_quotes(text: str) -> str:
    """Blank out the quotations of a text, character by character."""
    if len(text) > 2 * READ_CHARS:
        gap = "\n" * (len(text) - 2 * READ_CHARS)
        text = text[:READ_CHARS] + gap + text[-READ_CHARS:]
    lines, is_code, is_block = [], False, False
    for line in text.split("\n"):
        is_fence = bool(FENCE.match(line))
        is_block = is_block or bool(re.match(r"\s*<[A-Za-z][^>]*>\s*$", line))
        hidden = is_code or is_fence or is_block or line.lstrip().startswith(">")
        is_code ^= is_fence
        is_block = is_block and not re.match(r"\s*</", line)
        lines.append("\n" * len(line) if hidden else line)
    shown = "\n".join(lines)
    if here := HERE.search(shown):
        rest = len(shown) - here.end()
        shown = shown[: here.end()] + "\n" * rest
    shown = SHORT.sub(lambda short: short[0].replace(".", "_"), shown)
    return QUOTE.sub(lambda quoted: "\x00" * len(quoted[0]), shown)


def split_sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of the sentences, without the bullets of a list."""
    found = list(SENTENCE.finditer(text))
    if len(found) > MOST_SENTENCES:
        found = found[: MOST_SENTENCES // 2] + found[-MOST_SENTENCES // 2 :]
    for match in found:
        start, end = match.span()
        start += len(match[0]) - len(match[0].lstrip(" \t-*•\u3000"))
        end -= len(match[0]) - len(match[0].rstrip())
        if start < end:
            yield start, end


def _read_rule(text: str, start: int, end: int) -> RuleSpan | None:
    """Return the rule of a sentence, or None.

    Of a run-on sentence, it is only the part that states the rule.
    """
    # The rest of a longer one is not searched, so that no pattern takes long.
    sentence = text[start : min(end, start + SENTENCE_CHARS)]
    if ENDS.search(sentence) and not INSTEAD.search(sentence):
        return None
    if (at := _find_instruction(sentence)) is not None:
        return _cut_clause(text, start, end, start + at, "instruction")
    for kind, pattern in (("constraint", CONSTRAINTS), ("preference", PREFERENCES)):
        found = pattern.search(sentence)
        if found and not is_reported(sentence, found.start()):
            rule = _cut_clause(text, start, end, start + found.start(), kind)
            if not QUESTION.search(text[rule.start : rule.end]):
                return rule
    return None


def _find_instruction(sentence: str) -> int | None:
    """Return where an instruction begins, by its grammar or by a set phrase."""
    is_question = bool(QUESTION.search(sentence))
    at = find_wish(sentence, is_question=is_question)
    if at is None and (not is_question or POLITE.search(sentence)):
        found = INSTRUCTIONS.search(sentence)
        if (
            found
            and not is_chinese_about_one_text(sentence)
            and not is_reported(sentence, found.end())
            and not _takes_back(sentence)
        ):
            at = found.start()
    return at


def _cut_clause(text: str, start: int, end: int, at: int, kind: str) -> RuleSpan:
    """Cut out the clause that begins before `at`.

    It ends where a question follows, or with the sentence.
    """
    if after := CLAUSE_END.search(text, at + 1, min(end, at + END_CHARS)):
        end = after.start()
    if end - start > MAX_CHARS or kind == "preference":
        heads = [head.end() for head in CLAUSE_START.finditer(text, start, at + 1)]
        start = max((head for head in heads if head <= at), default=start)
    if end - start > MAX_CHARS:
        comma = max(text.rfind(mark, at, start + MAX_CHARS) for mark in ",，;；")
        end = comma if comma > at else start + MAX_CHARS
    return RuleSpan(start, end, kind)


def find_cancellations(text: str) -> list[str]:
    """Return the short sentences of a message that cancel something: at most MOST."""
    masked = mask_quotes(text)
    sentences = (masked[start:end] for start, end in split_sentences(masked))
    found = (
        each
        for each in sentences
        if len(each) <= CANCELLING_CHARS and _takes_back(each)
    )
    return [*islice(found, MOST)]


def _takes_back(sentence: str) -> bool:
    """Return whether the sentence ends a wish.

    After a new wish such words only repeat it: "call me Lin, no need for Ms Lin".
    """
    found = ENDS.search(sentence) or RELEASES.search(sentence)
    return bool(found) and find_wish(sentence[: found.start()]) is None


def find_replaced(text: str, rules: Sequence[str]) -> list[int]:
    """Return the indices of the earlier rules that `text` contradicts or cancels.

    It is about the same thing (the language, the length, the name…), or about the same
    words with the opposite sense, or cancels something and names it.
    """
    said, slots, is_negative = (
        _extract_words(text),
        _find_slots(text),
        _is_negative(text),
    )
    taken_back = [_extract_words(sentence) for sentence in find_cancellations(text)]
    replaced = []
    for place, rule in enumerate(rules):
        known = _extract_words(rule)
        names_it = any(_is_alike(words, known) for words in taken_back)
        is_opposite = is_negative != _is_negative(rule) and _is_alike(said, known)
        is_same_thing = bool(slots & _find_slots(rule)) and text != rule
        if names_it or is_opposite or is_same_thing:
            replaced.append(place)
    return replaced


def _extract_words(text: str) -> set[str]:
    return set(extract_terms(text)) - NEGATIONS


def _is_alike(said: set[str], known: set[str]) -> bool:
    """Return whether most of the said words are of a rule.

    A single word in common with a long rule is chance.
    """
    shared = said & known
    is_enough = len(shared) > 1 or len(known) <= FEW_WORDS
    return is_enough and bool(shared) and len(shared) >= ALIKE * len(said)


def _find_slots(text: str) -> set[str]:
    # A rule for some questions does not replace those for others.
    if CONDITION.search(text):
        return set()
    return {name for name, pattern in SLOTS.items() if pattern.search(text)}


def _is_negative(text: str) -> bool:
    return bool(
        re.search(r"\b(?:never|not|no|stop|avoid|without)\b|n['’]t\b", text, re.I)
        or re.search("不要|别|不用|禁止|切勿|不得|不再|不许", text)
    )
