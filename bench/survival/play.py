"""Plays the conversation with the things through a memory, and looks for each."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from itertools import chain, repeat

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from bench.memory.conversations import ANSWERS, SMALL_TALK
from bench.memory.models import ChatRequest, SummaryRequest
from bench.memory.systems.base import Make, System
from bench.memory.writers import write_extract
from memory.engine.tokens import count_tokens

from .things import Thing, list_things

COMPACTIONS = 50
# A memory that compacts rarely is played no longer than this.
MOST_TOKENS = 20_000_000
# Sentences of small talk in each message.
SENTENCES = 6
PROBE = "What did we talk about?"


@dataclass(frozen=True, slots=True)
class Survival:
    """The things of each kind of a memory in the request after the last compaction.

    `whole`: word for word in every request. `found`: not there, but word for word in
    the request that asks for it.
    """

    name: str
    whole: Counter[str]
    found: Counter[str]
    compactions: int
    turns: int


def play(name: str, make: Make, most: int = COMPACTIONS) -> Survival:
    """Play `most` compactions, and look for every thing in the next request."""
    system = make(write_extract)
    things = list_things()
    compactions = sent = turns = 0
    for turns, text in enumerate(write_messages(things), start=1):
        start = len(system.log)
        _take_turn(system, turns, text)
        system.rest(None)
        for event in system.log[start:]:
            if isinstance(event, ChatRequest):
                sent += count_tokens(event.prompt)
            compactions += isinstance(event, SummaryRequest)
        if compactions >= most or sent >= MOST_TOKENS:
            break
    whole, found = look_for(system, things, turns)
    return Survival(name, whole, found, compactions, turns)


def write_messages(things: Sequence[Thing]) -> Iterator[str]:
    """Yield a user's messages: old values, each thing in one, then only small talk."""
    said = chain([t.earlier for t in things if t.earlier], (t.sentence for t in things))
    for n, sentence in enumerate(chain(said, repeat(""))):
        talk = [SMALL_TALK[(n + k) % len(SMALL_TALK)] for k in range(SENTENCES)]
        yield " ".join(filter(None, [talk[0], sentence, *talk[1:]]))


def _take_turn(system: System, n: int, text: str) -> None:
    reply = " ".join(ANSWERS[(n + k) % len(ANSWERS)] for k in range(SENTENCES))
    system.play(HumanMessage(text, id=str(2 * n - 1)), AIMessage(reply, id=str(2 * n)))


def look_for(
    system: System, things: Sequence[Thing], turns: int
) -> tuple[Counter[str], Counter[str]]:
    start = len(system.log)
    _take_turn(system, turns + 1, PROBE)
    requests = [each for each in system.log[start:] if isinstance(each, ChatRequest)]
    sent = read_text(requests[-1].prompt)
    whole, found = Counter(), Counter()
    for thing in things:
        if thing.sentence in sent:
            whole[thing.kind] += 1
        elif thing.sentence in read_text(system.recall(thing.question)):
            found[thing.kind] += 1
    return whole, found


def read_text(messages: Sequence[BaseMessage]) -> str:
    """Return the words of a request; some memories escape their quotes."""
    text = unescape("\n".join(message.text for message in messages))
    return " ".join(text.split())
