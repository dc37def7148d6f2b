"""python -m bench.memory.everyday [tuned|kept|unseen]: of messages in ten registers,
in how many a rule or a fact is found, and how many finds are right.

Tune on the half "tuned" alone. The half "kept" is for reports. A sentence that is
changed by a template (SAID) is in the half of that sentence.
The half "unseen" has later Chinese messages about rules, also for reports alone.
"""

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from memory.engine.facts.detection import find_facts
from memory.engine.rules.detection import find_rules

from .rule_sentences import HALVES, SEED, SENTENCES, Score, Sentence, read_sentences

UNSEEN = "unseen"
FINDERS: dict[str, Callable] = {"rules": find_rules, "facts": find_facts}
# What is said before a sentence, and what behind it.
SAID = {
    "en": (
        ("Hello there! ", " Cheers."),
        ("Before I forget: ", ""),
        ("", " And what is a heat pump?"),
    ),
    "zh": (("你好呀！", "多谢。"), ("差点忘了：", ""), ("", "热泵是什么？")),
}


def take_rows(name: str, half: str, language: str) -> list[Sentence]:
    """Return a half, or the unseen messages: all are about rules and in Chinese."""
    if half in HALVES:
        return take_half(name, half, language)
    rows = read_sentences(SENTENCES.with_name("unseen_rules.txt"))
    return [each for each in rows if (name, language) == ("rules", each.language)]


def take_half(name: str, half: str, language: str) -> list[Sentence]:
    """Return half of each register and label, the same positions in both languages."""
    chance = random.Random(SEED)
    found = read_sentences(SENTENCES.with_name(f"everyday_{name}.txt"))
    halves: dict[tuple[str, bool], list[int]] = {}
    taken: list[Sentence] = []
    for _, some in groupby(found, attrgetter("language", "register")):
        section = [*some]
        for label in (True, False):
            rows = [each for each in section if bool(each.rule) == label]
            key = section[0].register, label
            halves.setdefault(key, chance.sample(range(len(rows)), len(rows) // 2))
            taken += (
                row
                for n, row in enumerate(rows)
                if row.language == language
                and (n in halves[key]) == (half == HALVES[0])
            )
    return taken


def change(sentences: Sequence[Sentence]) -> Iterator[Sentence]:
    """Each with other words around it."""
    for n, each in enumerate(sentences):
        before, after = SAID[each.language][n % 3]
        text = f"{before}{each.text}{after}"
        yield Sentence(each.language, each.register, text, each.rule)


def judge(name: str, each: Sentence) -> tuple[bool, bool]:
    """Return whether it is found, and whether a false one is found."""
    start = each.text.find(each.rule) if each.rule else 0
    end = start + len(each.rule)
    found = [one.start < end and start < one.end for one in FINDERS[name](each.text)]
    return any(found), not all(found)


def score(name: str, sentences: Sequence[Sentence]) -> Score:
    judged = [judge(name, each) for each in sentences]
    return Score(
        sum(bool(each.rule) for each in sentences),
        sum(right for right, _ in judged),
        sum(wrong for _, wrong in judged),
    )


def main() -> None:
    for name in FINDERS:
        for half in sys.argv[1:] or (*HALVES, UNSEEN):
            for language in ("en", "zh"):
                rows = take_rows(name, half, language)
                kinds = {"said": rows, "changed": [*change(rows)]} if rows else {}
                for kind, some in kinds.items():
                    got = score(name, some)
                    print(
                        f"{name} {half:5} {language} {kind:7}  recall "
                        f"{got.recall:4.0%}  precision {got.precision:4.0%}  of "
                        f"{got.rules}"
                    )


if __name__ == "__main__":
    main()
