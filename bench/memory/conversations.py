"""The conversations: recorded ones, a small made-up set, and those of the stress tests.

Recorded ones come from the folder in WINDOWPANE_DATA, one set per JSON file in the form
that `manage.py replay` reads. None is part of this project.
"""

import os
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

from memory.engine.tokens import count_text
from memory.evaluation.replay import (
    RecordedConversation,
    RecordedMessage,
    RecordedQuestion,
    read_recordings,
)

MADE_UP = "made up"
THINGS = ("bicycle", "piano", "garden", "telescope", "kiln", "canoe", "loom", "oven")
PLACES = ("Porto", "Tartu", "Ghent", "Osaka", "Valdivia", "Galway", "Pula", "Tromsø")
PEOPLE = ("Ines", "Bram", "Keiko", "Mateo", "Siobhan", "Luka", "Astrid", "Noor")
SMALL_TALK = (
    "It rained all morning, so I stayed in and read for a while.",
    "Work was busy again and the meetings went on and on.",
    "I keep thinking about taking a few days off soon.",
    "The neighbours are rebuilding their fence, it is rather loud.",
)
ANSWERS = (
    "That sounds like a day worth remembering, tell me more about it.",
    "I see. What would you like to do about it next?",
    "Good to hear, and thank you for telling me.",
)
STARTED = datetime(2025, 1, 6, 9, tzinfo=UTC)
LONG_FACT = (
    " is the number of the locker that Maria Lopez rents in the east hall until May"
)
FILLER = "and so the day went on as most of them do "


def load() -> dict[str, list[RecordedConversation]]:
    folder = os.environ.get("WINDOWPANE_DATA")
    if not folder:
        return {MADE_UP: [make_up(seed) for seed in (1, 2, 3)]}
    files = sorted(Path(folder).glob("*.json"))
    return {file.stem: read_recordings(file.read_bytes()) for file in files}


def make_up(seed: int, turns: int = 150) -> RecordedConversation:
    """The user tells of things bought in places; later questions ask what and where."""
    chance = random.Random(seed)
    messages = []
    questions = []
    for turn in range(turns):
        talk = f"{chance.choice(SMALL_TALK)} {chance.choice(SMALL_TALK)}"
        if turn % 3 == 0:
            who, what = chance.choice(PEOPLE), chance.choice(THINGS)
            fact = f"{who} and I bought a {what} in {chance.choice(PLACES)}"
            talk = f"{talk} {fact} for {chance.randrange(20, 900)} euros."
            asked = f"Where did {who} and I buy a {what}?"
            questions.append(
                RecordedQuestion(question=asked, evidence_ids=[f"{turn}:user"])
            )
        for role, text in (("user", talk), ("assistant", chance.choice(ANSWERS))):
            at = STARTED + timedelta(hours=turn, minutes=len(messages) % 2)
            messages.append(
                RecordedMessage(
                    id=f"{turn}:{role}", role=role, content=text, created_at=at
                )
            )
    return RecordedConversation(id=f"made-up-{seed}", messages=messages, qa=questions)


def make_stress(
    turns: int, message_tokens: int, fact: str = ""
) -> RecordedConversation:
    """Each turn the user states one fact; all messages have the same size."""
    messages = []
    for turn in range(turns):
        texts = {
            "user": f"Remember [fact-{turn:03}{fact}] ",
            "assistant": f"I see, turn {turn}: ",
        }
        messages += [
            RecordedMessage(
                id=f"{turn}:{role}", role=role, content=_fill(text, message_tokens)
            )
            for role, text in texts.items()
        ]
    return RecordedConversation(id=f"{turns} x {message_tokens}", messages=messages)


def _fill(text: str, tokens: int) -> str:
    missing = 4 * (tokens - count_text(text))
    return text + (FILLER * (missing // len(FILLER) + 1))[:missing]
