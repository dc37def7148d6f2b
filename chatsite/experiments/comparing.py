"""Two memories of one conversation side by side: what they cost, what they carry."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from langchain_core.messages import BaseMessage

from chatsite.pages.presenters import savings
from memory import versions
from memory.engine.compose import SummaryBlock, compose
from memory.engine.policy import CACHED_PRICE
from memory.engine.summaries import facts
from memory.engine.summaries import material as documents
from memory.engine.tokens import scaled
from memory.evaluation.metrics import WRITTEN_PRICE

from . import real
from .models import Experiment
from .player import Material
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
    # Left the window without a summary.
    left: int = 0
    facts_in_window: int = 0
    facts_in_summaries: int = 0
    facts_nowhere: int = 0
    # Some of the last ones, as they were said: content.
    lost: list[str] = field(default_factory=list)

    @property
    def mean_prompt(self) -> int:
        return round(self.prompt_tokens / self.turns) if self.turns else 0

    @property
    def cached_share(self) -> float:
        return self.cached / self.prompt_tokens if self.prompt_tokens else 0.0

    @property
    def _fresh(self) -> float:
        """Tokens that are read, those of a provider's cache at their price."""
        return self.prompt_tokens - (1 - CACHED_PRICE) * self.cached + self.read

    @property
    def cost(self) -> int:
        """In fresh tokens."""
        return round(self._fresh + WRITTEN_PRICE * self.written)

    @property
    def dollars(self) -> float:
        spent = self._fresh * settings.PRICE_INPUT
        return (spent + self.written * settings.PRICE_OUTPUT) / 1_000_000


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
    """Where the messages and their facts are at the end, on both sides."""
    known = list(
        dict.fromkeys(
            fact for message in messages for fact in facts.find_facts(message.text)
        )
    )
    wanted = known[-MAX_FACTS:]
    days = [message.additional_kwargs["created_at"] for message in messages]
    count_tokens = scaled(material.conversation.token_ratio)
    for name, side in sides.items():
        end = cutoff(blocks[name])
        window = [message for message in messages if int(message.id or 0) > end]
        view = compose(
            system_prompt=material.system_prompt, blocks=blocks[name], window=window
        )
        side.context_tokens = count_tokens(view.messages)
        written = [block for block in blocks[name] if not block.is_trimmed]
        trimmed = [block for block in blocks[name] if block.is_trimmed]
        side.summaries, side.in_window = len(written), len(window)
        side.left = sum(
            any(block.first_seq <= seq <= block.last_seq for block in trimmed)
            for seq in (int(message.id or 0) for message in messages)
        )
        side.in_summaries = len(messages) - len(window) - side.left
        texts = [block.text for block in written]
        shown = facts.find_said(wanted, map(documents.describe_text, window))
        rest = [fact for fact in wanted if fact not in shown]
        summarised = facts.find_said(rest, texts, days)
        nowhere = [fact.text for fact in rest if fact not in summarised]
        side.facts_in_window = len(shown)
        side.facts_in_summaries = len(summarised)
        side.facts_nowhere, side.lost = len(nowhere), nowhere[-MAX_LOST:]
    return {"looked_at": len(wanted), "found": len(known)}
