"""Two memories of one conversation side by side: what they cost, what they carry."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from statistics import median
from typing import Any

from channels.db import database_sync_to_async
from langchain_core.messages import BaseMessage

from chatsite.pages.presenters import savings
from memory import versions
from memory.engine import facts
from memory.engine.compose import SummaryBlock, compose
from memory.engine.facts import Fact
from memory.engine.summaries import material as documents
from memory.engine.tokens import scaled

from ..models import Experiment
from . import real
from .material import Material
from .steps import Steps, Turn, cutoff

# Looking up more of them would hold up the replies that this process streams.
MAX_FACTS = 2_000
MAX_LOST = 60


@dataclass(slots=True)
class Side:
    """One memory in numbers; tokens of prompts over the turns that both sides have."""

    turns: int = 0
    prompt_tokens: int = 0
    largest: int = 0
    cached: int = 0
    requests: int = 0
    read: int = 0
    written: int = 0
    rewrites_median: float = 0
    rewrites_max: int = 0
    rejected: int = 0
    # At the end.
    context_tokens: int = 0
    summaries: int = 0
    in_summaries: int = 0
    in_window: int = 0
    facts_in_window: int = 0
    facts_in_summaries: int = 0
    facts_nowhere: int = 0
    # Some of the last ones, as they were said: content.
    lost: list[str] = field(default_factory=list)


async def compare(
    experiment_id: int, material: Material, steps: Steps
) -> dict[str, Any]:
    """The experiment's whole result, with what was real when it ended."""
    experiment, turns, sides, blocks = await database_sync_to_async(_read)(
        experiment_id, material, steps
    )
    # Of an experiment that was stopped, what it has played.
    played = material.messages[: steps.place]
    found = await asyncio.to_thread(_weigh, material, played, blocks, sides)
    return {
        "steps": steps.dump(),
        "real": {
            "turns": [list(asdict(turn).values()) for turn in turns],
            "versions": [block.version for block in blocks["real"]],
        },
        "facts": found,
        "compared": sides["experiment"].turns,
        "sides": {name: asdict(side) for name, side in sides.items()},
        "last_seq": experiment.last_seq,
    }


def _read(
    experiment_id: int, material: Material, steps: Steps
) -> tuple[Experiment, list[Turn], dict[str, Side], dict[str, Sequence[SummaryBlock]]]:
    experiment = Experiment.objects.get(pk=experiment_id)
    active = [
        s
        for s in versions.active(material.conversation)
        if s.last_seq <= experiment.last_seq
    ]
    turns = real.read_turns(material, experiment.last_seq)
    both = {turn.seq for turn in turns} & {turn.seq for turn in steps.turns}
    spent = savings.spent_on_summaries(material.conversation)
    middle, most = real.rewrites(material, active)
    written = list(steps.generations.values())
    sides = {
        "real": _side(
            [turn for turn in turns if turn.seq in both],
            requests=spent.requests,
            read=spent.read,
            written=spent.written,
            rewrites_median=middle,
            rewrites_max=most,
        ),
        "experiment": _side(
            # Nothing real to compare with: all that was played.
            [turn for turn in steps.turns if turn.seq in both or not both],
            requests=experiment.requests,
            read=experiment.tokens_in,
            written=experiment.tokens_out,
            rewrites_median=median(written or [0]),
            rewrites_max=max(written, default=0),
            rejected=steps.rejected,
        ),
    }
    blocks = {
        "real": [versions.to_block(summary) for summary in active],
        "experiment": [each.block() for each in steps.versions_at(len(steps.turns))],
    }
    return experiment, turns, sides, blocks


def _side(turns: Sequence[Turn], **values: Any) -> Side:
    return Side(
        turns=len(turns),
        prompt_tokens=sum(turn.tokens for turn in turns),
        largest=max((turn.tokens for turn in turns), default=0),
        cached=sum(turn.cached for turn in turns),
        **values,
    )


def _weigh(
    material: Material,
    messages: Sequence[BaseMessage],
    blocks: dict[str, Sequence[SummaryBlock]],
    sides: dict[str, Side],
) -> dict[str, Any]:
    """Where the messages and the facts of them stand at the end, on both sides."""
    known = list(dict.fromkeys(_facts_of(messages)))
    wanted = known[-MAX_FACTS:]
    for name, side in sides.items():
        _place(side, blocks[name], messages, wanted, material)
    return {"looked_at": len(wanted), "found": len(known)}


def _facts_of(messages: Iterable[BaseMessage]) -> Iterable[Fact]:
    for message in messages:
        yield from facts.find_facts(message.text)


def _place(
    side: Side,
    blocks: Sequence[SummaryBlock],
    messages: Sequence[BaseMessage],
    wanted: Sequence[Fact],
    material: Material,
) -> None:
    end = cutoff(blocks)
    window = [message for message in messages if int(message.id or 0) > end]
    view = compose(
        system_prompt=material.system_prompt, blocks=blocks, window=window
    ).messages
    side.context_tokens = scaled(material.conversation.token_ratio)(view)
    side.summaries, side.in_window = len(blocks), len(window)
    side.in_summaries = len(messages) - len(window)
    shown = facts.find_said(wanted, map(documents.describe_text, window))
    days = _days(messages)
    told = facts.find_said(
        [fact for fact in wanted if fact not in shown],
        [block.text for block in blocks],
        days,
    )
    nowhere = [fact.text for fact in wanted if fact not in shown and fact not in told]
    side.facts_in_window, side.facts_in_summaries = len(shown), len(told)
    side.facts_nowhere, side.lost = len(nowhere), nowhere[-MAX_LOST:]


def _days(messages: Iterable[BaseMessage]) -> list[date]:
    return [message.additional_kwargs["created_at"] for message in messages]
