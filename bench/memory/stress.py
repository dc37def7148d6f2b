"""How many facts survive: with a perfect summariser, and with one that loses some."""

from dataclasses import dataclass
from statistics import mean

from .conversations import make_stress
from .meter import Meter
from .systems.base import Make
from .writers import FACT, make_lossy, write_every_fact

PERFECT_TURNS = 120
MESSAGE_TOKENS = (130, 330)
LOSSY_TURNS = 400
KEPT = 0.9
SEEDS = (1, 2, 3, 4, 5)


@dataclass(frozen=True, slots=True)
class Survival:
    """Facts lost by the perfect summariser per message size; facts alive per seed,
    and the mean prompt that this took.
    """

    lost: tuple[int, ...]
    alive: tuple[int, ...]
    prompt_tokens: int

    @property
    def mean_alive(self) -> float:
        return mean(self.alive)


def survive(make: Make) -> Survival:
    lost = []
    for size in MESSAGE_TOKENS:
        meter = Meter(make(write_every_fact), make_stress(PERFECT_TURNS, size))
        meter.play()
        lost.append(PERFECT_TURNS - count_facts(meter))
    alive = []
    for seed in SEEDS:
        recording = make_stress(LOSSY_TURNS, MESSAGE_TOKENS[0])
        meter = Meter(make(make_lossy(KEPT, seed)), recording)
        prompt_tokens = meter.play().report()["prompt_tokens_per_turn"]
        alive.append(count_facts(meter))
    return Survival(tuple(lost), tuple(alive), round(prompt_tokens))


def count_facts(meter: Meter) -> int:
    """Facts in what the model is shown at the end."""
    shown = " ".join(message.text for message in meter.probed)
    return len(set(FACT.findall(shown)))
