"""Two hundred things that a user says once: twenty of each of ten kinds.

A thing is a sentence, and the question that asks for it. Changed values are said twice:
the old value first, and the new one in the sentence that has to survive.
"""

from dataclasses import dataclass
from datetime import date, timedelta

OBJECTS = (
    *("bicycle", "piano", "garden", "telescope", "kiln", "canoe", "loom", "oven"),
    *("ladder", "lantern", "anvil", "compass", "trumpet", "greenhouse", "barometer"),
    *("beehive", "windmill", "sledge", "harp", "tractor"),
)
NAMES = (
    *("Okafor", "Lindqvist", "Marchetti", "Adeyemi", "Kowalczyk", "Haraldsen"),
    *("Petrossian", "Nakamura", "Ferreira", "Oyelaran", "Szabo", "Thibault", "Varga"),
    *("Whitcombe", "Yilmaz", "Zoric", "Abernathy", "Bergstrom", "Castellano"),
    "Drummond",
)
PLACES = (
    *("Porto", "Tartu", "Ghent", "Osaka", "Valdivia", "Galway", "Pula", "Bergen"),
    *("Turku", "Lviv", "Graz", "Malaga", "Bari", "Tours", "Leeds", "Basel", "Kaunas"),
    *("Brno", "Split", "Vigo"),
)
# By kind: the sentence, and the question.
KINDS = {
    "names": ("{name} repairs the {it}.", "Who repairs the {it}?"),
    "numbers": ("The {it} costs {number} euros.", "How much does the {it} cost?"),
    "dates": ("The {it} arrives on {day}.", "When does the {it} arrive?"),
    "rules": (
        "Always mention the {it} before you mention {place}.",
        "What do you always have to mention before {place}?",
    ),
    "decisions": (
        "We decided to sell the {it} to {name}.",
        "To whom did we decide to sell the {it}?",
    ),
    "open tasks": (
        "I still have to send the papers of the {it} to {place}.",
        "What do I still have to do with the papers of the {it}?",
    ),
    "file paths": (
        "The manual of the {it} is in /srv/{place}/{number}/{it}.md.",
        "Where is the manual of the {it}?",
    ),
    "code identifiers": (
        "The function for the {it} is called weigh_{it}_{number}().",
        "What is the function for the {it} called?",
    ),
    "negations": (
        "I did not buy the {it} in {place}.",
        "Did I buy the {it} in {place}?",
    ),
    "changed values": (
        "The {it} is now in room {number}, and no longer in room {old}.",
        "In which room is the {it} now?",
    ),
}
OLD_VALUE = "The {it} is in room {old}."


@dataclass(frozen=True, slots=True)
class Thing:
    kind: str
    sentence: str
    question: str
    # What was said before, where the value has changed.
    earlier: str = ""


def list_things() -> list[Thing]:
    """Return all things in the order in which they are said, the kinds in turn."""
    return [
        _make_thing(kind, place * 7 + at, at)
        for at in range(len(OBJECTS))
        for place, kind in enumerate(KINDS)
    ]


def _make_thing(kind: str, shift: int, at: int) -> Thing:
    words = {
        "it": OBJECTS[at],
        "name": NAMES[shift % len(NAMES)],
        "place": PLACES[shift % len(PLACES)],
        "number": 100 + 37 * at + shift,
        "old": 900 - 11 * at,
        "day": f"{date(2027, 3, 1) + timedelta(days=9 * at):%d %B %Y}",
    }
    sentence, question = (text.format(**words) for text in KINDS[kind])
    earlier = OLD_VALUE.format(**words) if kind == "changed values" else ""
    return Thing(kind, sentence, question, earlier)
