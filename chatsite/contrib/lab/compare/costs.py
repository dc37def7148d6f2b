"""Costs of the parts of a request.

Each part has its tokens, those of them from the provider's cache, and their
price by the current settings.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from langchain_core.messages import BaseMessage

from chatsite.llm import pricing
from memory.context import RequestContext
from memory.engine import tokens
from memory.engine.attachments import typed_part
from memory.models import Message, ModelCall

# The parts in the order in which they are shown. A provider puts the tools, and its own
# additions, before the messages.
PARTS = {
    "held": gettext_lazy("What the provider holds"),
    "only_there": gettext_lazy("Readable only by the provider"),
    "tools": gettext_lazy("Tools"),
    "provider": gettext_lazy("What the provider adds"),
    "instructions": gettext_lazy("Instructions"),
    "summaries": gettext_lazy("Summaries"),
    "pins": gettext_lazy("Pinned messages"),
    "facts": gettext_lazy("Facts"),
    "rules": gettext_lazy("Rules"),
    "window": gettext_lazy("Recent messages"),
    "files": gettext_lazy("Files"),
    "recall": gettext_lazy("Recalled notes"),
    "newest": gettext_lazy("Newest message"),
    "steps": gettext_lazy("Tool calls of the turn"),
}
OF_SECTIONS = {"system": "instructions", "pinned": "pins", "recalled": "recall"}


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    tokens: int
    cached: int
    price: float

    @property
    def title(self) -> str:
        return str(PARTS[self.name])


@dataclass(frozen=True, slots=True)
class Costs:
    """The estimated parts of a request, which add up to `total` with `uncounted`.

    `uncounted` is negative if the estimate was too high.
    """

    parts: list[Part]
    uncounted: int
    # As the provider reported them; else estimated.
    total: int
    is_reported: bool
    cached: int | None
    # Price of the whole request, by its model.
    price: float


@dataclass(frozen=True, slots=True)
class CostRow:
    """A line of the table: the tokens of a part in the first and in the second request.

    `cached` and `price` are those of the second one; None if unknown.
    """

    title: str
    before: int
    now: int
    cached: int | None = None
    price: float | None = None

    @property
    def difference(self) -> int:
        return self.now - self.before


def list_cost_rows(before: Costs | None, now: Costs) -> list[CostRow]:
    """Return the parts of either request, what is uncounted, and the total."""
    was = {part.name: part.tokens for part in before.parts} if before else {}
    parts = {part.name: part for part in now.parts}
    rows = []
    for name in (name for name in PARTS if name in was or name in parts):
        part = parts.get(name) or Part(name, 0, 0, 0.0)
        cached = None if now.cached is None else part.cached
        sizes = (was.get(name, 0), part.tokens)
        rows.append(CostRow(part.title, *sizes, cached, part.price))
    rest = (before.uncounted if before else 0, now.uncounted)
    if any(rest):
        title = _("Estimated too high") if now.uncounted < 0 else _("Uncounted")
        rows.append(CostRow(title, *rest))
    title = _("Total, as reported") if now.is_reported else _("Total, estimated")
    totals = (before.total if before else 0, now.total)
    return [*rows, CostRow(title, *totals, now.cached, now.price)]


def measure_request(
    call: ModelCall, sent: RequestContext, states: Mapping[int, Message]
) -> Costs:
    total = call.tokens_input
    if total is None:
        total = call.tokens_estimated
    # A cache holds a prefix of the request.
    left = min(call.tokens_cached or 0, total)
    counts: Counter[str] = Counter()
    cached: Counter[str] = Counter()
    for name, count in _list_pieces(sent, states):
        counts[name] += count
        cached[name] += min(count, left)
        left -= min(count, left)
    parts = [
        Part(name, count, cached[name], _price_sent(call, count, cached[name]))
        for name in PARTS
        if (count := counts[name])
    ]
    uncounted = total - sum(part.tokens for part in parts)
    is_reported = call.tokens_input is not None
    price = _price_sent(call, total, call.tokens_cached or 0, call.tokens_extra)
    return Costs(parts, uncounted, total, is_reported, call.tokens_cached, price)


def _price_sent(call: ModelCall, count: int, cached: int, extra: int = 0) -> float:
    return pricing.price_tokens(call.model, count, cached=cached, extra=extra)


def _list_pieces(
    sent: RequestContext, states: Mapping[int, Message]
) -> Iterator[tuple[str, int]]:
    """Yield each piece and its tokens, in the order in which a provider reads it."""
    sections = dict(sent.context.sections)
    for kind, count in sent.parts:
        name = OF_SECTIONS.get(kind, kind)
        messages = sections.get(kind, ())
        sizes = [each for one in messages for each in _split_files(name, one, states)]
        yield from tokens.share_out(sizes, count) if sizes else [(name, count)]


def _split_files(
    name: str, message: BaseMessage, states: Mapping[int, Message]
) -> Iterator[tuple[str, int]]:
    count = tokens.count_message(message)
    state = states.get(int(message.id)) if message.id else None
    if state is None or not state.attachments:
        yield name, count
        return
    typed = tokens.count_text(typed_part(message.text, state.attachments))
    own = min(count, typed + tokens.MESSAGE_OVERHEAD)
    yield name, own
    yield "files", count - own
