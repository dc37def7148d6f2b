"""python -m bench.memory.rule_sentences [tuned|kept]: count correct rule detections.

It counts how many of 600 hand-written messages are read correctly as stating a rule or
none, and in how many chats between people a rule is found although they address no
assistant (the sets of WINDOWPANE_DATA).

Tune on the half "tuned" alone. The half "kept" is for reports.
"""

import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from memory.engine.rules.detection import find_rules
from memory.evaluation.replay import RecordedConversation

from .conversations import load

SENTENCES = Path(__file__).resolve().parents[2] / "tests/bench/rule_sentences.txt"
HALVES = ("tuned", "kept")
SEED = 29
MARKED = re.compile(r"\[\[(.*?)\]\]")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A message of one language and register. `rule`: the part of it that is a rule,
    empty in a lookalike."""

    language: str
    register: str
    text: str
    rule: str


@dataclass(frozen=True, slots=True)
class Score:
    """`right`: rules found. `wrong`: messages with something found that is none."""

    rules: int
    right: int
    wrong: int

    @property
    def recall(self) -> float:
        return self.right / self.rules

    @property
    def precision(self) -> float:
        return self.right / (self.right + self.wrong)


def read_sentences(path: Path = SENTENCES) -> list[Sentence]:
    found, section = [], ("", "")
    for line in path.read_text().splitlines():
        if line.startswith("["):
            language, register = line.strip("[]").split()
            section = (language, register)
        elif line[:2] in ("+ ", "- "):
            marked = MARKED.search(line)
            text = MARKED.sub(r"\1", line[2:])
            rule = (marked[1] if marked else text) if line[0] == "+" else ""
            found.append(Sentence(*section, text, rule))
    return found


def take_half(half: str) -> list[Sentence]:
    """Return half of each register and label.

    The halves of both languages have the same positions: sentences of one position can
    be of one thought, and are then in one half.
    """
    chance = random.Random(SEED)
    places: dict[tuple[str, bool], list[bool]] = {}
    seen: Counter[tuple[str, str, bool]] = Counter()
    taken = []
    for each in read_sentences():
        kind = (each.register, bool(each.rule))
        if kind not in places:
            # Fifteen of each: seven here and eight there, in turns.
            more = len(places) // 2 % 2 == 0
            places[kind] = [True] * (7 + more) + [False] * (8 - more)
            chance.shuffle(places[kind])
        is_tuned = places[kind][seen[each.language, *kind]]
        seen[each.language, *kind] += 1
        if is_tuned == (half == "tuned"):
            taken.append(each)
    return taken


def is_found(sentence: Sentence) -> tuple[bool, bool]:
    """Return whether its rule is found, and whether a false one is found."""
    start = sentence.text.find(sentence.rule) if sentence.rule else 0
    end = start + len(sentence.rule)
    on_it = [
        each.start < end and start < each.end for each in find_rules(sentence.text)
    ]
    return any(on_it), not all(on_it)


def score(sentences: Sequence[Sentence]) -> Score:
    judged = [is_found(each) for each in sentences]
    return Score(
        sum(bool(each.rule) for each in sentences),
        sum(right for right, _ in judged),
        sum(wrong for _, wrong in judged),
    )


def find_alarms(recordings: Sequence[RecordedConversation]) -> Iterator[str]:
    """Yield what is detected as a rule in chats between people, both sides."""
    for recording in recordings:
        for message in recording.messages:
            for rule in find_rules(message.content):
                yield message.content[rule.start : rule.end]


def main() -> None:
    for half in sys.argv[1:] or HALVES:
        for language in ("en", "zh"):
            got = score([each for each in take_half(half) if each.language == language])
            print(
                f"{half:6} {language}  recall {got.recall:4.0%}  "
                f"precision {got.precision:4.0%}  of {got.rules} rules"
            )
    for name, recordings in load().items():
        count = sum(len(each.messages) for each in recordings)
        alarms = len([*find_alarms(recordings)])
        print(f"{name:20} {1000 * alarms / count:5.1f} alarms per 1,000 messages")


if __name__ == "__main__":
    main()
