"""Facts that a provider's summary has lost, and how many of them the check names.

Planted are 200 facts in English and Chinese, in a conversation; a summary has
some of them in other words. No model is asked.

Usage: python -m bench.memory.provider_omissions [--facts 200] [--seed 1]
"""

import argparse
from calendar import month_name
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

from langchain_core.messages import AIMessage, HumanMessage

from memory.engine.summaries.dropped import find_dropped

LETTERS = "ABDEFGHKLMNPRTVXZ"
GIVEN = [
    "Amara",
    "Bjorn",
    "Chidi",
    "Dagny",
    "Emeka",
    "Farida",
    "Goran",
    "Hana",
    "Ivo",
    "Jelena",
    "Kofi",
    "Liora",
]
# The halves of family names.
FAMILY = (
    ("Aba", "Ber", "Cas", "Drum", "Ek", "Fer", "Gra", "Hol", "Ivan", "Jor"),
    ("ra", "dal", "mond"),
)
CHINESE = "伟芳敏洋静帆磊丽杰昊明强华芬涛雪梅宁"
SURNAMES = "李王张刘陈杨赵黄周吴徐孙"
THINGS = (
    ("pump", "水泵"),
    ("roof", "屋顶"),
    ("archive", "档案室"),
    ("kitchen", "厨房"),
    ("lift", "电梯"),
    ("garden", "花园"),
    ("workshop", "车间"),
    ("boiler", "锅炉"),
)


@dataclass(frozen=True)
class PlantedFact:
    """A fact as it was said, and as a summary says it."""

    said: str
    kept: str
    value: str


def make_fact(number: int, random: Random, used: set[str]) -> PlantedFact:
    """Return a fact whose value no other one has."""
    make = (_make_english, _make_chinese)[number % 2]
    while (fact := make(number // 2, random)).value in used:
        pass
    used.add(fact.value)
    return fact


def _make_english(number: int, random: Random) -> PlantedFact:
    thing = random.choice(THINGS)[0]
    match number % 5:
        case 0:
            value = _make_code(random)
            said = f"The order for the {thing} has the number {value}."
            return PlantedFact(said, f"Order of the {thing}: {value}.", value)
        case 1:
            value = str(random.randrange(1_100, 98_000))
            said = f"We may spend {value} euros on the {thing}, not a cent more."
            kept = f"Budget of the {thing}: {int(value):,} euros."
            return PlantedFact(said, kept, value)
        case 2:
            month, day = random.randrange(1, 13), random.randrange(1, 29)
            value = f"2027-{month:02d}-{day:02d}"
            said = f"The inspection of the {thing} is on {value}."
            kept = f"{day} {month_name[month]} 2027: inspection of the {thing}."
            return PlantedFact(said, kept, value)
        case 3:
            family = "".join(map(random.choice, FAMILY))
            value = f"{random.choice(GIVEN)} {family}"
            said = f"For the {thing} you have to ask for {value} at the desk."
            return PlantedFact(said, f"- contact for the {thing}: {value}", value)
        case _:
            value = f"{random.choice(GIVEN).lower()}{random.randrange(99)}@example.org"
            said = f"Please send the offer for the {thing} to {value} tomorrow."
            return PlantedFact(said, f"Offers ({thing}) go to {value}.", value)


def _make_chinese(number: int, random: Random) -> PlantedFact:
    thing = random.choice(THINGS)[1]
    match number % 4:
        case 0:
            value = _make_code(random)
            return PlantedFact(
                f"{thing}的订单号是 {value}。", f"{thing}订单:{value}。", value
            )
        case 1:
            value = str(random.randrange(1_100, 98_000))
            said = f"{thing}最多可以花{value}元。"
            return PlantedFact(said, f"{thing}预算{value}元。", value)
        case 2:
            value = f"2027年{random.randrange(1, 13)}月{random.randrange(1, 29)}日"
            said = f"{thing}的检查定在{value}。"
            return PlantedFact(said, f"{value}检查{thing}。", value)
        case _:
            name = random.choice(SURNAMES) + "".join(random.choices(CHINESE, k=2))
            said = f"负责{thing}的师傅名叫{name}。"
            return PlantedFact(said, f"{thing}师傅:{name}。", name)


def _make_code(random: Random) -> str:
    letters = "".join(random.choices(LETTERS, k=2))
    return f"{letters}-{random.randrange(1_000, 9_999)}"


@dataclass(frozen=True)
class PlantedTalk:
    """Messages with a fact in each question, and a summary without the lost ones."""

    facts: list[PlantedFact]
    lost: set[int]

    @property
    def texts(self) -> list[str]:
        """The question and the answer of each turn."""
        said = [(each.said, make_answer(each)) for each in self.facts]
        return [text for pair in said for text in pair]

    @property
    def summary(self) -> str:
        kept = [each.kept for n, each in enumerate(self.facts) if n not in self.lost]
        return "\n".join(kept)

    def judge(self, seqs: Iterable[int]) -> tuple[float, float, list[PlantedFact]]:
        """Return recall, the share of false alarms, and the facts that were missed.

        A false alarm is a fact that the summary has, and the check names.
        """
        found = {(seq - 1) // 2 for seq in seqs}
        missed = [self.facts[n] for n in sorted(self.lost - found)]
        false = len(found - self.lost) / (len(self.facts) - len(self.lost))
        return 1 - len(missed) / len(self.lost), false, missed


def make_answer(fact: PlantedFact) -> str:
    return "Noted." if fact.said.isascii() else "好的。"


def plant(count: int, seed: int) -> PlantedTalk:
    random, used = Random(seed), set[str]()
    facts = [make_fact(number, random, used) for number in range(count)]
    return PlantedTalk(facts, {*random.sample(range(count), count * 2 // 5)})


def find_lost(talk: PlantedTalk) -> list[int]:
    """Return the numbers of the messages that the check names."""
    messages = [
        (AIMessage if number % 2 else HumanMessage)(text, id=str(number + 1))
        for number, text in enumerate(talk.texts)
    ]
    return [each.seq for each in find_dropped(messages, talk.summary)]


def main(facts: int, seeds: Sequence[int]) -> None:
    for seed in seeds:
        talk = plant(facts, seed)
        recall, false, missed = talk.judge(find_lost(talk))
        print(f"seed {seed}: recall {recall:.1%}, false alarms {false:.1%}")
        for fact in missed:
            print(f"  missed: {fact.said}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--facts", type=int, default=200)
    parser.add_argument("--seed", type=int, action="append")
    options = parser.parse_args()
    main(options.facts, options.seed or [1])
