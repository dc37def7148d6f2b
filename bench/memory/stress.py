"""Surviving facts: with a perfect summariser, and with one that loses some."""

from dataclasses import dataclass
from statistics import mean

from .conversations import LONG_FACT, make_stress
from .meter import Meter
from .systems.base import Make
from .writers import FACT, make_lossy, write_every_fact

PERFECT_TURNS = 120
MESSAGE_TOKENS = (130, 330)
LOSSY_TURNS = 400
KEPT = 0.9
SEEDS = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class Survival:
    """`lost` by the perfect summariser, per message size. `alive` after the lossy one,
    per seed, of facts of 3 tokens and of 22; and the mean prompt the short ones took.
    """

    lost: tuple[int, ...]
    alive: tuple[int, ...]
    alive_long: tuple[int, ...]
    prompt_tokens: float


def survive(make: Make) -> Survival:
    short = [_play_lossy(make, seed, "") for seed in SEEDS]
    long = [_play_lossy(make, seed, LONG_FACT) for seed in SEEDS]
    return Survival(
        tuple(_count_lost(make, size) for size in MESSAGE_TOKENS),
        tuple(map(count_facts, short)),
        tuple(map(count_facts, long)),
        mean(meter.tally.make_report()["prompt_tokens_per_turn"] for meter in short),
    )


def _count_lost(make: Make, message_tokens: int) -> int:
    recording = make_stress(PERFECT_TURNS, message_tokens)
    meter = Meter(make(write_every_fact), recording)
    meter.play()
    return PERFECT_TURNS - count_facts(meter)


def _play_lossy(make: Make, seed: int, fact: str) -> Meter:
    recording = make_stress(LOSSY_TURNS, MESSAGE_TOKENS[0], fact)
    meter = Meter(make(make_lossy(KEPT, seed)), recording)
    meter.play()
    return meter


def count_facts(meter: Meter) -> int:
    """Facts in what the model is shown at the end."""
    shown = " ".join(message.text for message in meter.probed)
    return len(set(FACT.findall(shown)))
