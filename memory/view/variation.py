"""Variations of a request, as changes of its references.

The request is composed from the changed references, and proved as usual.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from memory.models import Conversation
from memory.prompts import facts_in, hash_text, rules_in
from memory.ranges import Ranges, to_ranges

from .tool_groups import complete_groups

# The keys of references about recalled notes.
OF_NOTES = ("recalled", "excerpts", "lines", "replaced", "until", "files")
# The keys of references about the offered tools.
OF_TOOLS = (
    *("tools", "tools_sha256", "tools_text", "tool_choice"),
    *("tools_refused", "tools_left_out"),
)
# The key of references that holds the variation.
VARIED = "trial"
# The kinds of parts that can be switched off as a whole, and the references of each.
SWITCHED = {
    "tools": (),
    "system": ("system",),
    "summaries": ("summaries",),
    "pinned": ("pinned",),
    "facts": ("facts",),
    "rules": ("rules",),
    "window": ("window",),
    "recalled": OF_NOTES,
}
# So many parts can be off at once, and a key is no longer than this.
MOST_OFF, KEY_CHARS = 200, 40
# Parts that have a key each: "summary-4", "message-12", "rule-3x17", "fact-5e88…".
PART_KEY = re.compile(
    r"(?:summary|message)-[1-9][0-9]{0,8}|(?:rule|fact)-[0-9a-z]{1,35}"
)


@dataclass(frozen=True, slots=True)
class Variation:
    """The differences of a request; by default there are none.

    Another model, temperature (None: unchanged) or preset of the policy; without notes
    from a search, without summaries; one message by its number in other words (`text`),
    hidden, or shown again. `off`: parts that are left out, by the keys of list_keys().
    `now`: composed from the memory as it is, not from the recorded request.
    """

    model: str = ""
    temperature: float | None = None
    preset: str = ""
    without_recall: bool = False
    without_summaries: bool = False
    edited: int = 0
    left_out: int = 0
    brought_back: int = 0
    off: tuple[str, ...] = ()
    now: bool = False
    text: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the differences, without the words."""
        said = asdict(self)
        del said["text"]
        said["off"] = list(self.off)
        is_usual = {"temperature": self.temperature is None}
        return {n: v for n, v in said.items() if not is_usual.get(n, not v)}

    @classmethod
    def from_json(cls, said: Mapping[str, Any], text: str = "") -> Self:
        known = {name: said[name] for name in said if name in cls.__slots__}
        off = tuple(known.get("off", ()))
        return cls(**known | {"off": off, "text": text})


def is_part_key(key: str) -> bool:
    """Return whether this is the key of a part that can be switched off."""
    return key in SWITCHED or bool(PART_KEY.fullmatch(key))


def name_statement(kind: str, ref: Sequence[Any]) -> str:
    """Return the key of a rule or fact by its reference."""
    place, said = ref[0], ref[1]
    if kind == "fact":
        return f"fact-{said[:16]}"
    return f"rule-{place}x{said[:16] if isinstance(said, str) else said}"


def list_keys(refs: Mapping[str, Any]) -> set[str]:
    """Return the keys of all parts of a request that can be switched off."""
    sheets = {kind for kind, names in SWITCHED.items() if any(map(refs.get, names))}
    return {
        *sheets,
        *(f"summary-{version}" for version in refs["summaries"]),
        *(f"message-{n}" for n in list_numbers([*refs["pinned"], *refs["window"]])),
        *(name_statement("rule", ref) for ref in rules_in(refs)),
        *(name_statement("fact", ref) for ref in facts_in(refs)),
    }


def find_varied(refs: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a recorded request differed; an imported one can say anything."""
    said = refs.get(VARIED)
    if not isinstance(said, dict):
        return {}
    off = said.get("off")
    keys = off if isinstance(off, list) else []
    return said | {"off": [k for k in keys if isinstance(k, str) and is_part_key(k)]}


def list_numbers(ranges: Iterable[Iterable[int]]) -> set[int]:
    return {seq for first, last in ranges for seq in range(first, last + 1)}


def list_sent_ranges(refs: Mapping[str, Any]) -> Ranges:
    """Return the messages that a request contains themselves."""
    newest = [[refs["newest"]] * 2] if refs.get("newest") else []
    pinned, steps = refs.get("pinned", ()), refs.get("steps", ())
    return [*pinned, *refs["window"], *steps, *newest]


def list_sent(refs: Mapping[str, Any]) -> set[int]:
    """Return their numbers."""
    return list_numbers(list_sent_ranges(refs))


def vary_refs(
    conversation: Conversation, refs: Mapping[str, Any], variation: Variation
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return references to the varied request, and its new text by hash.

    The effect of another preset is not included.
    """
    varied, sent = dict(refs), list_sent(refs)
    if variation.without_summaries:
        varied["summaries"] = []
    if variation.without_recall:
        varied |= {name: [] for name in OF_NOTES}
    if variation.left_out:
        _drop_messages(varied, complete_groups(conversation, [variation.left_out]))
    texts = _switch_off(conversation, varied, variation.off)
    if variation.brought_back:
        back = complete_groups(conversation, [variation.brought_back])
        _add_messages(varied, back)
    is_edited = variation.edited in list_sent(varied)
    if is_edited:
        sha256 = hash_text(variation.text)
        texts[sha256] = variation.text
        varied["edited"] = [[variation.edited, sha256]]
        if "shortened" in refs:
            cuts = refs["shortened"]
            varied["shortened"] = [cut for cut in cuts if cut[0] != variation.edited]
    keep_sent_images(varied, with_images=True)
    # The part that applies here: the next message has another window than the trial
    # had.
    keys = list_keys(refs) | {"tools"}  # missing there while a request is composed
    noted = replace(
        variation,
        edited=variation.edited if is_edited else 0,
        left_out=variation.left_out if variation.left_out in sent else 0,
        brought_back=0 if variation.brought_back in sent else variation.brought_back,
        off=tuple(key for key in variation.off if key in keys),
    )
    varied[VARIED] = noted.to_json()
    return varied, texts


def _switch_off(
    conversation: Conversation, refs: dict[str, Any], off: Sequence[str]
) -> dict[str, str]:
    """Take the parts of these keys out of the references.

    Return the text of instructions that are off, which is none, by its hash.
    """
    if not off:
        return {}
    for name in (name for key in off for name in SWITCHED.get(key, ())):
        refs[name] = []
    hidden = [int(key[8:]) for key in off if key.startswith("message-")]
    if hidden:
        _drop_messages(refs, complete_groups(conversation, hidden))
    left = [each for each in refs["summaries"] if f"summary-{each}" not in off]
    refs["summaries"] = left
    for name, kind in (("rules", "rule"), ("facts", "fact")):
        if name in refs:
            stated = refs[name]
            refs[name] = [r for r in stated if name_statement(kind, r) not in off]
    if "system" not in off:
        return {}
    refs["system"] = hash_text("")
    return {refs["system"]: ""}


def forget_words(kept: Mapping[str, Any]) -> dict[str, Any]:
    """Return the differences of the next request without a user's words.

    Those of one message only are gone with them; those that stay are of no text.
    """
    if not kept.get("stays"):
        return {}
    said = {n: v for n, v in kept.get("variation", {}).items() if n != "edited"}
    return {"variation": said, "text": "", "stays": True}


def _drop_messages(refs: dict[str, Any], seqs: Iterable[int]) -> None:
    gone = set(seqs) - {refs.get("newest")}
    for name in ("pinned", "window", "steps"):
        if name in refs:
            refs[name] = to_ranges(list_numbers(refs[name]) - gone)
    for name in OF_NOTES:
        notes = refs.get(name, [])
        refs[name] = [
            n for n in notes if (n if name == "recalled" else n[0]) not in gone
        ]


def _add_messages(refs: dict[str, Any], seqs: Iterable[int]) -> None:
    """Add messages to the window, in the order of their numbers."""
    before = refs.get("newest") or max(list_sent(refs), default=0) + 1
    added = {seq for seq in seqs if seq < before} - list_sent(refs)
    _drop_messages(refs, added)  # where a note quotes them
    refs["window"] = to_ranges(list_numbers(refs["window"]) | added)


def keep_sent_images(refs: dict[str, Any], *, with_images: bool) -> None:
    """Keep the images of messages that are still sent, for a model with images."""
    if "images" in refs:
        sent = list_sent(refs)
        kept = [each for each in refs["images"] if with_images and each[0] in sent]
        refs["images"] = kept
