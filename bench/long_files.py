"""python -m bench.long_files [sqlite|postgresql ...]: how many of 60 questions about
three long files, put in other words, get a request with the sentence that answers them.

Each file has 5,000,000 characters: 20 sentences that answer, 20 that resemble them, and
text around them in which one of ten words is one of theirs, some often and some seldom.
The file is stored, sent and asked about as a person does it. Then what that costs.
"""

import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import Any

from . import databases

QUESTIONS = Path(__file__).resolve().parents[1] / "tests/bench/long_file_questions.txt"
CHARS, SEED = 5_000_000, 11
ROOMS = (2_000, 1_000, 4_000)
# One word of so many is of the sentences; the others are of no language.
ONE_OF = 10
VOCABULARY = 20_000
SENTENCES = 6  # of a paragraph
WORD = re.compile(r"[\u4e00-\u9fff]{2}|[^\W\u4e00-\u9fff]+")
CHINESE = re.compile(r"[\u4e00-\u9fff]")


@dataclass(slots=True)
class Section:
    """Of one file: what answers, what resembles it, and what is asked."""

    name: str
    answers: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)


def read_sections() -> list[Section]:
    sections: list[Section] = []
    for line in QUESTIONS.read_text().splitlines():
        if line.startswith("["):
            sections.append(Section(line.strip("[]")))
        elif line[:2] in ("= ", "~ ", "? "):
            now = sections[-1]
            kinds = {"=": now.answers, "~": now.others, "?": now.questions}
            kinds[line[0]].append(line[2:])
    return sections


def write_file(section: Section, chars: int, seed: int = SEED) -> str:
    """The text of a file about a section, of about so many characters."""
    chance = random.Random(seed)
    told = [*section.answers, *section.others]
    chance.shuffle(told)
    around = write_around(section, chance)
    parts, size, step = [], 0, chars // (len(told) + 1)
    while size < chars:
        if told and size >= step * (len(section.answers) * 2 - len(told) + 1):
            parts.append(f"{next(around)} {told.pop()} {next(around)}\n\n")
        else:
            parts.append(" ".join(next(around) for _ in range(SENTENCES)) + "\n\n")
        size += len(parts[-1])
    return "".join(parts)


def write_around(section: Section, chance: random.Random) -> Iterator[str]:
    """Sentences that answer nothing."""
    all_of_it = " ".join([*section.answers, *section.others, *section.questions])
    own = sorted({*WORD.findall(all_of_it)})
    chance.shuffle(own)
    is_chinese = len(CHINESE.findall(all_of_it)) > len(all_of_it) // 2
    signs = [chr(0x4E00 + n) for n in range(3_000)] if is_chinese else "aeioulmnrstk"
    size = 2 if is_chinese else 7
    strange = ["".join(chance.choices(signs, k=size)) for _ in range(VOCABULARY)]
    glue, end = ("", "。") if is_chinese else (" ", ".")
    own_weights, weights = (
        [*accumulate(1 / rank for rank in range(1, len(words) + 1))]
        for words in (own, strange)
    )
    while True:
        words = chance.choices(strange, cum_weights=weights, k=14)
        for place in range(len(words)):
            if chance.randrange(ONE_OF) == 0:
                words[place] = chance.choices(own, cum_weights=own_weights)[0]
        yield glue.join(words) + end


def store_file(text: str) -> Any:
    """A conversation whose first message has the file, and is answered."""
    from django.contrib.auth import get_user_model

    from chatsite.features.attachments import uploads
    from chatsite.features.attachments.reading import ReadFile
    from chatsite.turns import commands
    from memory import transcript
    from tests.chatsite.scenes import answer

    owner = get_user_model().objects.create_user(f"bench-{time.monotonic_ns()}")
    row = uploads.store_upload(owner, ReadFile("file.txt", "txt", len(text), text))
    conversation = transcript.create_conversation(owner)
    values = {"text": "Here it is.", "client_id": "a", "attachments": [str(row.pk)]}
    commands.send_message(conversation, run=False, **values)
    answer(conversation)
    return conversation


def ask_all(section: Section, conversation: Any) -> tuple[list[bool], list[float]]:
    """Whether the request of each question has its answer, and its milliseconds."""
    from chatsite.turns import requests

    found, spent = [], []
    pairs = zip(section.answers, section.questions, strict=True)
    for answer, question in pairs:
        conversation.refresh_from_db()
        started = time.perf_counter()
        built = requests.next_turn(conversation, question)
        spent.append(1000 * (time.perf_counter() - started))
        quoted = "".join(each.text for each in built.context.section("recalled"))
        found.append(answer in quoted)
    return found, spent


def report() -> None:
    from django.conf import settings

    for section in read_sections():
        text = write_file(section, CHARS)
        started = time.thread_time()
        conversation = store_file(text)
        stored = time.thread_time() - started
        print(f"{section.name}: stored in {stored:.1f} s of processor time")
        for room in ROOMS:
            settings.ATTACHMENT_PASSAGE_TOKENS = room
            found, spent = ask_all(section, conversation)
            # The least fit was chosen with every second question, from the first on.
            others, of_them = sum(found[1::2]), len(found[1::2])
            print(
                f"{room:7,} tokens: {sum(found)} of {len(found)}, {others} of the "
                f"other {of_them}; {median(spent):.0f} ms a request",
                flush=True,
            )


if __name__ == "__main__":
    databases.run("bench.long_files", report)
