"""Comparison of two memories of one conversation: what they cost and carry."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from channels.db import database_sync_to_async
from langchain_core.messages import BaseMessage

from memory import versions
from memory.engine.compose import SummaryBlock
from memory.engine.policy import CACHED_PRICE
from memory.engine.summaries import facts
from memory.engine.summaries import material as documents
from memory.evaluation.metrics import WRITTEN_PRICE

from . import real_turns
from .models import Experiment
from .player import ExperimentPlayer
from .replay_steps import PlayedTurn, ReplaySteps

# Looking up more facts would delay the replies that this process streams.
MAX_FACTS = 2_000
MAX_LOST = 60


@dataclass(slots=True)
class Side:
    """One memory in numbers; tokens of prompts over the turns that both sides have."""

    turns: int = 0
    prompt_tokens: int = 0
    largest: int = 0
    cached: int = 0
    read: int = 0
    written: int = 0
    # Facts of the messages that the final view lacks.
    facts_nowhere: int = 0
    # The last of these facts, in the words of the conversation: content.
    lost: list[str] = field(default_factory=list)

    @property
    def mean_prompt(self) -> int:
        return round(self.prompt_tokens / self.turns) if self.turns else 0

    @property
    def cached_share(self) -> float:
        return self.cached / self.prompt_tokens if self.prompt_tokens else 0.0

    @property
    def summariser(self) -> int:
        return self.read + self.written

    @property
    def cost(self) -> int:
        """The cost in uncached tokens that are read.

        Cached and written tokens are converted by their price.
        """
        saved = (1 - CACHED_PRICE) * self.cached
        return round(
            self.prompt_tokens - saved + self.read + WRITTEN_PRICE * self.written
        )


async def compare_memories(
    experiment_id: int, player: ExperimentPlayer
) -> dict[str, Any]:
    """Return the whole result of the experiment, with the real side as it is now."""
    steps = player.steps
    read = database_sync_to_async(_read_sides)
    turns, sides, blocks = await read(experiment_id, steps)
    # A stopped experiment has played only some of the messages.
    played = player.messages[: steps.place]
    found = await asyncio.to_thread(_look_up_facts, played, blocks, sides)
    return {
        "steps": steps.to_json(),
        "real": {
            "turns": [list(asdict(turn).values()) for turn in turns],
            "versions": [block.version for block in blocks["real"]],
        },
        "facts": found,
        "sides": {name: asdict(side) for name, side in sides.items()},
    }


def _read_sides(
    experiment_id: int, steps: ReplaySteps
) -> tuple[list[PlayedTurn], dict[str, Side], dict[str, Sequence[SummaryBlock]]]:
    experiment = Experiment.objects.select_related("conversation").get(pk=experiment_id)
    conversation = experiment.conversation
    turns = real_turns.read_turns(conversation, experiment.last_seq)
    both = {turn.seq for turn in turns} & {turn.seq for turn in steps.turns}
    # If no real turn can be compared, use all that were played.
    played = [turn for turn in steps.turns if turn.seq in both or not both]
    sides = {
        "real": _make_side(
            [turn for turn in turns if turn.seq in both],
            *real_turns.count_summary_tokens(conversation),
        ),
        "experiment": _make_side(played, experiment.tokens_in, experiment.tokens_out),
    }
    blocks = {
        "real": [
            versions.to_block(summary)
            for summary in versions.active_summaries(conversation)
            if summary.last_seq <= experiment.last_seq
        ],
        "experiment": steps.versions_at(len(steps.turns)),
    }
    return turns, sides, blocks


def _make_side(turns: Sequence[PlayedTurn], read: int, written: int) -> Side:
    return Side(
        turns=len(turns),
        prompt_tokens=sum(turn.tokens for turn in turns),
        largest=max((turn.tokens for turn in turns), default=0),
        cached=sum(turn.cached for turn in turns),
        read=read,
        written=written,
    )


def _look_up_facts(
    messages: Sequence[BaseMessage],
    blocks: dict[str, Sequence[SummaryBlock]],
    sides: dict[str, Side],
) -> dict[str, int]:
    """Count for both sides the facts of the messages that the final view lacks.

    Sets `facts_nowhere` and `lost` of each side.
    """
    known = list(
        dict.fromkeys(
            fact for message in messages for fact in facts.find_facts(message.text)
        )
    )
    wanted = known[-MAX_FACTS:]
    days = [message.additional_kwargs["created_at"] for message in messages]
    for name, side in sides.items():
        end = versions.last_covered(blocks[name])
        window = [message for message in messages if int(message.id or 0) > end]
        said = facts.find_said(wanted, map(documents.describe_text, window))
        texts = [block.text for block in blocks[name]]
        said |= facts.find_said(set(wanted) - said, texts, days)
        nowhere = [fact.text for fact in wanted if fact not in said]
        side.facts_nowhere, side.lost = len(nowhere), nowhere[-MAX_LOST:]
    return {"looked_at": len(wanted), "found": len(known)}
