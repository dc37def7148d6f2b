"""python -m bench.memory.many [NAME ...]: questions whose evidence is in three or more
messages: the share of these that is in the notes of a request, within the tokens of the
default policy, with its interval by question (bootstrap, 95 %).

A message counts if a line of it is in the notes. Sets are the files in the folder of
WINDOWPANE_DATA.
"""

import random
import sys
from collections.abc import Iterator
from statistics import fmean

from langchain_core.messages import AIMessage

from memory.engine.policy import Policy
from memory.engine.search.archive import MessageIndex
from memory.engine.search.excerpts import choose_excerpts
from memory.engine.tokens import count_tokens
from memory.evaluation.replay import Player, RecordedConversation, read_document

from .conversations import load

LEAST = 3
DRAWS = 2_000


def main() -> None:
    sets = load()
    for name in sys.argv[1:] or sets:
        found = [each for recording in sets[name] for each in score(recording)]
        shares, notes, chars = zip(*found, strict=True)
        low, high = bound(shares)
        print(
            f"{name:20} {fmean(shares):6.1%} [{low:.1%}, {high:.1%}] of {len(shares)}, "
            f"{fmean(notes):.0f} notes of {fmean(chars):.0f} characters"
        )


def score(recording: RecordedConversation) -> Iterator[tuple[float, int, float]]:
    """Yield the share of evidence that is found, the notes and their mean length."""
    places = {each.id: n for n, each in enumerate(recording.messages, start=1)}
    messages = Player(recording, Policy(), summarise_nothing).by_number
    index = MessageIndex(map(read_document, messages.values()))
    now = recording.messages[-1].created_at
    for asked in recording.qa:
        evidence = {places[id_] for id_ in asked.evidence_ids if id_ in places}
        if len(evidence) < LEAST:
            continue
        notes = choose_excerpts(
            index.search(asked.question, limit=None, at=now),
            messages,
            asked.question,
            room=Policy().recall_tokens,
            count_tokens=count_tokens,
        )
        share = len(evidence & {note.seq for note in notes}) / len(evidence)
        yield share, len(notes), fmean([len(n.message.text) for n in notes] or [0])


async def summarise_nothing(request: object) -> AIMessage:
    return AIMessage("")


def bound(shares: tuple[float, ...]) -> tuple[float, float]:
    chance = random.Random(1)
    means = sorted(fmean(chance.choices(shares, k=len(shares))) for _ in range(DRAWS))
    return means[DRAWS // 40], means[-DRAWS // 40]


if __name__ == "__main__":
    main()
