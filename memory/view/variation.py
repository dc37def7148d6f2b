"""Variations of a request, as changes of its references.

The request is composed from the changed references, and proved as usual.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from memory.models import Conversation
from memory.prompts import hash_text
from memory.ranges import to_ranges

from .tool_groups import complete_groups

# The keys of references about recalled notes.
OF_NOTES = ("recalled", "excerpts", "replaced", "until", "files")
# The keys of references about the offered tools.
OF_TOOLS = (
    *("tools", "tools_sha256", "tools_text", "tool_choice"),
    *("tools_refused", "tools_left_out"),
)
# The key of references that holds the variation.
VARIED = "trial"


@dataclass(frozen=True, slots=True)
class Variation:
    """The differences of a request; by default there are none.

    Another model, temperature (None: unchanged) or preset of the policy; without notes
    from a search, without summaries; one message by its number in other words (`text`),
    hidden, or shown again.
    """

    model: str = ""
    temperature: float | None = None
    preset: str = ""
    without_recall: bool = False
    without_summaries: bool = False
    edited: int = 0
    left_out: int = 0
    brought_back: int = 0
    text: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the differences, without the words."""
        said = asdict(self)
        del said["text"]
        is_usual = {"temperature": self.temperature is None}
        return {n: v for n, v in said.items() if not is_usual.get(n, not v)}

    @classmethod
    def from_json(cls, said: Mapping[str, Any], text: str = "") -> Self:
        known = {name: said[name] for name in said if name in cls.__slots__}
        return cls(**known | {"text": text})


def list_numbers(ranges: Iterable[Iterable[int]]) -> set[int]:
    return {seq for first, last in ranges for seq in range(first, last + 1)}


def list_sent(refs: Mapping[str, Any]) -> set[int]:
    """Return the numbers of the messages that a request contains themselves."""
    newest = [[refs["newest"]] * 2] if refs.get("newest") else []
    ranges = [*refs["pinned"], *refs["window"], *refs.get("steps", ()), *newest]
    return list_numbers(ranges)


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
    if variation.brought_back:
        back = complete_groups(conversation, [variation.brought_back])
        _add_messages(varied, back)
    texts = {}
    if variation.edited in list_sent(varied):
        sha256 = hash_text(variation.text)
        texts[sha256] = variation.text
        varied["edited"] = [[variation.edited, sha256]]
        if "shortened" in refs:
            cuts = refs["shortened"]
            varied["shortened"] = [cut for cut in cuts if cut[0] != variation.edited]
    keep_sent_images(varied, with_images=True)
    # The part that applies here: the next message has another window than the trial
    # had.
    noted = replace(
        variation,
        edited=variation.edited if texts else 0,
        left_out=variation.left_out if variation.left_out in sent else 0,
        brought_back=0 if variation.brought_back in sent else variation.brought_back,
    )
    varied[VARIED] = noted.to_json()
    return varied, texts


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
