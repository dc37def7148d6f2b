"""The real side of a comparison, read from the stored requests.

For each turn: what was sent, and how much of it a provider's cache could have
held.
"""

from collections.abc import Iterator
from math import ceil
from typing import Any

from memory import versions
from memory.engine.compose import quote_summary
from memory.engine.tokens import MESSAGE_OVERHEAD, count_text
from memory.evaluation.metrics import count_cacheable
from memory.models import Conversation, ModelCall, Prompt
from memory.models.call import list_own_calls, sum_summary_calls
from memory.ranges import Totals

from .replay_steps import PlayedTurn

REFS = {"system", "fence", "summaries", "pinned", "window", "recalled", "newest"}
# A part of a request by its source: ("prompt", hash), ("summary", version), or
# ("messages", first, last).
Part = tuple[Any, ...]


def read_turns(conversation: Conversation, last_seq: int) -> list[PlayedTurn]:
    """Return the latest request for each message, of requests made on this site."""
    rows = list_own_calls(conversation, ModelCall.Purpose.REPLY).filter(
        message__superseded_at=None, message__seq__lte=last_seq
    )
    values = rows.order_by("id").values_list(
        "pk", "refs", "tokens_input", "tokens_estimated"
    )
    latest = {each[1]["newest"]: each for each in values if is_whole_request(each[1])}
    sizes, ratio = _Sizes(conversation), conversation.token_ratio
    turns, before = [], None
    for seq, (pk, refs, reported, estimated) in sorted(latest.items()):
        shared = sizes.shared(before, refs) if before else 0
        tokens = estimated if reported is None else reported
        cached = min(count_cacheable(ceil(shared * ratio)), tokens)
        turns.append(PlayedTurn(seq, tokens, cached, refs["recalled"], pk))
        before = refs
    return turns


def count_summary_tokens(conversation: Conversation) -> tuple[int, int]:
    """Return the tokens that the summariser has read and written on this site."""
    spent = sum_summary_calls(conversation)
    return sum(read for _, read, _ in spent), sum(written for *_, written in spent)


def is_whole_request(refs: object) -> bool:
    """Return whether `refs` has all references; False if it was tampered with."""
    return isinstance(refs, dict) and refs.keys() >= REFS


class _Sizes:
    """Sizes of the shared beginnings of successive requests, by their references.

    A provider's cache holds a prompt as far as it is unchanged from its beginning.
    """

    def __init__(self, conversation: Conversation) -> None:
        rows = conversation.messages.values_list("seq", "tokens")
        self.totals = Totals(dict(rows))
        self.sizes = {
            ("summary", row.version): count_text(quote_summary(versions.to_block(row)))
            for row in conversation.summaries.only(
                "version", "first_seq", "last_seq", "text"
            )
        }

    def shared(self, before: dict[str, Any], after: dict[str, Any]) -> int:
        tokens = 0
        for one, other in zip(_parts_of(before), _parts_of(after), strict=False):
            if one[:2] != other[:2]:
                break
            tokens += self._size(min(one, other))
            if one != other:
                break
        return tokens

    def _size(self, part: Part) -> int:
        kind, *rest = part
        if kind == "messages":
            return self.totals.sum_within([rest])
        if part not in self.sizes:
            row = Prompt.objects.filter(pk=part[1]).first()
            size = count_text(row.text) if row else 0
            self.sizes[part] = size + MESSAGE_OVERHEAD
        return self.sizes[part]


def _parts_of(refs: dict[str, Any]) -> Iterator[Part]:
    yield "prompt", refs["system"]
    if refs["summaries"]:
        yield "prompt", refs["fence"]
        yield from (("summary", version) for version in refs["summaries"])
    window, newest = [*refs["window"]], refs["newest"]
    # Recalled notes are between the window and the newest message.
    if not refs["recalled"]:
        is_next = window and window[-1][1] == newest - 1
        window.append([window.pop()[0] if is_next else newest, newest])
    yield from (("messages", *each) for each in (*refs["pinned"], *window))
