"""The real side of a comparison: what was sent for each turn, as its requests say, and
how much of it a provider's cache could have held.
"""

from collections.abc import Iterable, Sequence
from itertools import takewhile
from math import ceil
from statistics import median
from typing import Any

from memory import versions
from memory.engine.compose import quote_summary
from memory.engine.tokens import MESSAGE_OVERHEAD, count_text
from memory.evaluation.metrics import cacheable
from memory.models import Conversation, ModelCall, Prompt, Summary
from memory.ranges import Ranges, Totals

from .player import Material
from .steps import Turn

REFS = {"system", "fence", "summaries", "pinned", "window", "recalled", "newest"}


def read_turns(material: Material, last_seq: int) -> list[Turn]:
    """The latest request for each message, of those that were made here."""
    rows = material.conversation.model_calls.filter(
        purpose=ModelCall.Purpose.REPLY,
        message__superseded_at=None,
        message__seq__lte=last_seq,
        created_at__gte=material.conversation.created_at,
    )
    values = rows.order_by("id").values_list(
        "pk", "refs", "tokens_input", "tokens_estimated"
    )
    latest = {each[1]["newest"]: each for each in values if is_whole(each[1])}
    sizes = _Sizes(material.conversation)
    turns, before = [], None
    for seq, (pk, refs, reported, estimated) in sorted(latest.items()):
        shared = sizes.shared(before, refs) if before else 0
        ratio = material.conversation.token_ratio
        turns.append(
            Turn(
                seq=seq,
                tokens=estimated if reported is None else reported,
                cached=min(cacheable(ceil(shared * ratio)), reported or estimated),
                recalled=refs["recalled"],
                call=pk,
            )
        )
        before = refs
    return turns


def is_whole(refs: object) -> bool:
    """False if the references of a request were tampered with."""
    return isinstance(refs, dict) and refs.keys() >= REFS


def rewrites(material: Material, active: Sequence[Summary]) -> tuple[float, int]:
    """How often messages in summaries were rewritten: median and most."""
    counts: list[int] = []
    for summary in active:
        inside = sum(
            summary.first_seq <= int(message.id or 0) <= summary.last_seq
            for message in material.messages
        )
        counts += [summary.generation] * inside
    return median(counts or [0]), max(counts, default=0)


class _Sizes:
    """How much of a request stood in the one before it, by their references alone.

    A provider's cache holds a prompt as far as it is unchanged from its beginning.
    """

    def __init__(self, conversation: Conversation) -> None:
        rows = conversation.messages.values_list("seq", "tokens")
        self.totals = Totals(dict(rows))
        self.blocks = {
            row.version: count_text(quote_summary(versions.to_block(row)))
            for row in conversation.summaries.only(
                "version", "first_seq", "last_seq", "text"
            )
        }
        self.prompts: dict[str, int] = {}
        self.conversation = conversation

    def shared(self, before: dict[str, Any], after: dict[str, Any]) -> int:
        if before["system"] != after["system"]:
            return 0
        tokens = self._prompt(after["system"]) + MESSAGE_OVERHEAD
        if before["fence"] != after["fence"]:
            return tokens
        pairs = zip(before["summaries"], after["summaries"], strict=False)
        common = [
            one for one, _other in takewhile(lambda pair: pair[0] == pair[1], pairs)
        ]
        if common or before["summaries"] or after["summaries"]:
            both = before["summaries"] and after["summaries"]
            tokens += self._prompt(after["fence"]) + MESSAGE_OVERHEAD if both else 0
            tokens += sum(self.blocks.get(version, 0) for version in common)
        if before["summaries"] != after["summaries"]:
            return tokens
        if before["pinned"] != after["pinned"]:
            return tokens
        tokens += self.totals.within(after["pinned"])
        return tokens + self._window(before, after)

    def _window(self, before: dict[str, Any], after: dict[str, Any]) -> int:
        old = list(before["window"])
        # What was recalled stood between the window and the newest message.
        if not before["recalled"]:
            old = [*old, [before["newest"], before["newest"]]]
        tokens = 0
        for (first, last), (start, end) in zip(
            _joined(old), after["window"], strict=False
        ):
            if first != start:
                break
            tokens += self.totals.within([[first, min(last, end)]])
            if last != end:
                break
        return tokens

    def _prompt(self, sha256: str) -> int:
        if sha256 not in self.prompts:
            row = Prompt.objects.filter(pk=sha256).first()
            self.prompts[sha256] = count_text(row.text) if row else 0
        return self.prompts[sha256]


def _joined(ranges: Iterable[Sequence[int]]) -> Ranges:
    """The same with neighbours as one range."""
    joined: Ranges = []
    for first, last in ranges:
        if joined and joined[-1][1] == first - 1:
            joined[-1][1] = last
        else:
            joined.append([first, last])
    return joined
