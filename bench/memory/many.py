"""python -m bench.memory.many [NAME ...]: questions whose evidence is in three or more
messages: the share of these that is in the notes of a request, within the tokens of the
default policy, with its interval by question (bootstrap, 95 %), and the share that is
in the whole request.

A message counts if a line of it is in the notes. Of the request it also counts if it is
in the window, is a rule, or if a whole sentence of it is in a summary; the notes are
then of what is behind the window. The summariser is the extractive one.

Sets are the files in the folder of WINDOWPANE_DATA.
"""

import asyncio
import random
import re
import sys
from collections.abc import Iterator
from statistics import fmean

from langchain_core.messages import AIMessage, BaseMessage

from memory.engine.policy import Policy
from memory.engine.search.archive import MessageIndex
from memory.engine.search.excerpts import choose_excerpts
from memory.engine.tokens import count_tokens
from memory.evaluation.replay import Player, RecordedConversation, read_document

from .conversations import load
from .models import SUMMARY_TOKENS
from .writers import write_extract

LEAST = 3
# A shorter sentence, such as "Thank you!", is in a summary by chance.
SENTENCE, LEAST_CHARS = re.compile(r"(?<=[.!?。！？])\s*|\n+"), 20
DRAWS = 2_000


def main() -> None:
    sets = load()
    for name in sys.argv[1:] or sets:
        found = [each for recording in sets[name] for each in score(recording)]
        shares, reached, notes, chars = zip(*found, strict=True)
        low, high = bound(shares)
        print(
            f"{name:20} {fmean(shares):6.1%} [{low:.1%}, {high:.1%}] of {len(shares)}, "
            f"{fmean(notes):.0f} notes of {fmean(chars):.0f} characters; "
            f"{fmean(reached):.1%} in the request"
        )


def score(
    recording: RecordedConversation,
) -> Iterator[tuple[float, float, int, float]]:
    """Yield the share of evidence in the notes, and in the request, the number of notes
    and their mean length.
    """
    places = {each.id: n for n, each in enumerate(recording.messages, start=1)}
    policy = Policy(max_summary_tokens=SUMMARY_TOKENS, rules="keep")
    player = Player(recording, policy, summarise)
    asyncio.run(player.play_messages())
    messages, cutoff = player.by_number, player.state.cutoff
    index = MessageIndex(map(read_document, messages.values()))
    beside = find_beside(player)
    now = recording.messages[-1].created_at
    for asked in recording.qa:
        evidence = {places[id_] for id_ in asked.evidence_ids if id_ in places}
        if len(evidence) < LEAST:
            continue
        notes, behind = (
            choose_excerpts(
                index.search(asked.question, limit=None, at=now, before=before),
                messages,
                asked.question,
                room=policy.recall_tokens,
                count_tokens=count_tokens,
            )
            for before in (None, cutoff + 1)
        )
        in_notes, in_request = {note.seq for note in notes}, {n.seq for n in behind}
        yield (
            len(evidence & in_notes) / len(evidence),
            len(evidence & (in_request | beside)) / len(evidence),
            len(notes),
            fmean([len(n.message.text) for n in notes] or [0]),
        )


def find_beside(player: Player) -> set[int]:
    """Return the messages that a request has beside its notes."""
    cutoff = player.state.cutoff
    summaries = " ".join(" ".join(b.text for b in player.state.blocks).split())
    sentences = {
        seq: [" ".join(each.split()) for each in SENTENCE.split(message.text)]
        for seq, message in player.by_number.items()
    }
    return {rule.seq for rule in player.rules.blocks}.union(
        seq
        for seq, said in sentences.items()
        if seq > cutoff
        or any(len(each) >= LEAST_CHARS and each in summaries for each in said)
    )


async def summarise(request: list[BaseMessage], **_options: object) -> AIMessage:
    return AIMessage(write_extract(request, SUMMARY_TOKENS))


def bound(shares: tuple[float, ...]) -> tuple[float, float]:
    chance = random.Random(1)
    means = sorted(fmean(chance.choices(shares, k=len(shares))) for _ in range(DRAWS))
    return means[DRAWS // 40], means[-DRAWS // 40]


if __name__ == "__main__":
    main()
