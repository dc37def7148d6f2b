"""python -m bench.memory.beam [--size 100K] [--numbers odd]: replay files of BEAM.

BEAM (Tavakoli et al., 2025) is the public repository mohammadtavakoli78/BEAM: chats
with an assistant of about 100,000 tokens and more, with questions and the messages that
answer them. A checkout of it lies in the folder of WINDOWPANE_DATA as `BEAM`; the files
are written beside it. It states no licence, so no text of it is part of this project.

Conversations with odd numbers are for development, those with even ones for checking.
"""

import argparse
import json
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

SIZES = ("100K", "500K", "1M")
NUMBERS = {"odd": 1, "even": 0}
# At the end of what the user says: the place in the plan that it was written from.
PLAN = re.compile(r"\s*->->\s*[\d,\s]*$")
NUMBER = re.compile(r"\d[\d,.:]*(?:[-–]\d[\d,.:]*)*")
UNDATED = datetime(2024, 1, 1, 9, tzinfo=UTC)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.memory.beam")
    parser.add_argument("--size", choices=SIZES, default="100K")
    parser.add_argument("--numbers", choices=NUMBERS, default="odd")
    asked = parser.parse_args()
    folder = Path(os.environ["WINDOWPANE_DATA"])
    chats = folder / "BEAM" / "chats" / asked.size
    numbers = sorted(int(each.name) for each in chats.iterdir() if each.is_dir())
    made = [
        convert(chats / str(number), f"beam-{asked.size}-{number}")
        for number in numbers
        if number % 2 == NUMBERS[asked.numbers]
    ]
    file = folder / f"beam-{asked.size}-{asked.numbers}.json"
    file.write_text(json.dumps(made, ensure_ascii=False))
    print(f"{file}: {len(made)} conversations")


def convert(folder: Path, name: str) -> dict[str, Any]:
    """One conversation in the form that `manage.py replay` reads."""
    batches = json.loads((folder / "chat.json").read_text())
    asked = json.loads(
        (folder / "probing_questions" / "probing_questions.json").read_text()
    )
    messages = [*_read_messages(batches)]
    texts = {int(each["id"]): each["content"] for each in messages}
    questions = [
        _read_question(each, category, texts)
        for category, several in asked.items()
        for each in several
    ]
    return {"id": name, "messages": messages, "qa": questions}


def _read_messages(batches: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """A minute apart, from the day that each batch begins on."""
    time = UNDATED
    for message in (m for batch in batches for turn in batch["turns"] for m in turn):
        if day := message.get("time_anchor"):
            time = datetime.strptime(f"{day} 09 +0000", "%B-%d-%Y %H %z")
        yield {
            "id": str(message["id"]),
            "role": message["role"],
            "content": PLAN.sub("", message["content"]),
            "created_at": time.isoformat(),
        }
        time += timedelta(minutes=1)


def _read_question(
    asked: dict[str, Any], category: str, texts: dict[int, str]
) -> dict[str, Any]:
    source = asked.get("source_chat_ids") or []
    evidence = dict.fromkeys(_read_ids(source))
    question = {
        "question": asked["question"],
        "category": category,
        "answer": str(asked.get("answer", "")),
        "evidence_ids": [str(each) for each in evidence],
    }
    if category == "knowledge_update" and isinstance(source, dict):
        question |= _find_newest(question["answer"], source, texts)
    return question


def _find_newest(
    answer: str, source: dict[str, Any], texts: dict[int, str]
) -> dict[str, str]:
    """The number of the answer as the update gives it, if it has one; rather one that
    the statement before the update does not have."""
    updated = [*_read_ids(source.get("updated_info"))]
    before = {
        number
        for each in _read_ids(source.get("original_info"))
        for number in _read_numbers(texts[each])
    }
    numbers = sorted(_read_numbers(answer), key=lambda number: number in before)
    for number in numbers:
        for each in updated:
            if number in _read_numbers(texts[each]):
                return {"newest_id": str(each), "newest_value": number}
    return {}


def _read_numbers(text: str) -> list[str]:
    return [number.rstrip(",.:") for number in NUMBER.findall(text)]


def _read_ids(value: object) -> Iterator[int]:
    """All numbers of messages in a list, or in lists under names."""
    if isinstance(value, int):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _read_ids(each)
    elif isinstance(value, dict):
        yield from _read_ids([*value.values()])


if __name__ == "__main__":
    main()
