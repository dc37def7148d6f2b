"""Costs of the latest turns of a conversation, part by part.

Also finds the tools that each of these turns paid for and none has called.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import groupby, takewhile
from operator import attrgetter
from typing import Any

from chatsite.features.tools import registry
from chatsite.turns.requests import has_request
from memory.models import Conversation, Message, ModelCall
from memory.view import rebuilding

from ..stored_requests import find_reply_calls
from .costs import PARTS, Costs, Part, measure_request
from .sent_requests import read_states

MOST_TURNS, MOST_REQUESTS = 50, 100
# Limits for all their requests together: windows of a large model are long.
MOST_MESSAGES, MOST_TOKENS = 6_000, 2_000_000
# Turns without a call after which a tool counts as not needed.
TELLING_TURNS = 10
# Bars are measured in thousandths of the strip's height.
PERMILLE = 1_000


@dataclass(frozen=True, slots=True)
class TurnCosts:
    """The costs of all requests of a turn that ended with reply `seq`."""

    seq: int
    at: datetime
    costs: Costs

    def count_tokens(self, name: str) -> int:
        return sum(part.tokens for part in self.costs.parts if part.name == name)


@dataclass(frozen=True, slots=True)
class UnusedTools:
    """Tools that each of the last `turns` turns offered and none called."""

    names: list[str]
    tokens: int
    turns: int


@dataclass(frozen=True, slots=True)
class CostHistory:
    """The costs of the latest turns, the oldest first."""

    turns: list[TurnCosts]
    unused: UnusedTools | None
    # The names of all tools that these turns had.
    offered: list[str]

    @property
    def parts(self) -> list[str]:
        """The names of the parts that occur, in the order of PARTS."""
        found = {part.name for turn in self.turns for part in turn.costs.parts}
        return [name for name in PARTS if name in found]

    @property
    def most(self) -> int:
        return max((turn.costs.total for turn in self.turns), default=0)


def read_cost_history(conversation: Conversation) -> CostHistory:
    calls = _find_latest_calls(conversation)
    sent = rebuilding.recompose_contexts(calls) if calls else []
    numbers = {int(each.id) for one in sent for each in one.context.messages if each.id}
    states = read_states(conversation, numbers)
    turns = _group_turns(calls)
    costs = {
        call.pk: measure_request(call, one, states)
        for call, one in zip(calls, sent, strict=True)
    }
    measured = []
    for turn in turns:
        end, parts = turn[-1], [costs[call.pk] for call in turn]
        measured.append(TurnCosts(end.seq, end.created_at, _add_costs(parts)))
    offered = [name for turn in turns for call in turn for name in _list_offered(call)]
    unused = _find_unused(conversation, turns)
    return CostHistory(measured, unused, list(dict.fromkeys(offered)))


def _group_turns(calls: Sequence[Any]) -> list[list[Any]]:
    """Group the requests by turn: those that answer the same message."""

    def identify_turn(call: Any) -> int | str:
        # Old references can lack it: such a request is a turn of its own.
        return call.refs.get("newest") or f"request {call.pk}"

    turns = [list(turn) for _, turn in groupby(calls, identify_turn)]
    return turns[-MOST_TURNS:]


def _list_offered(call: ModelCall) -> list[str]:
    return call.refs.get("tools", [])


def _find_latest_calls(conversation: Conversation) -> list[Any]:
    """Return the requests of the latest replies, the oldest first.

    There are fewer of them if they are long.
    """
    replies = conversation.messages.filter(
        has_request(), role=Message.Role.ASSISTANT
    ).order_by("-seq")[:MOST_REQUESTS]
    keys = list(replies.values_list("pk", flat=True))
    calls = find_reply_calls(Message.objects.filter(pk__in=keys))
    found: list[ModelCall] = []
    messages, tokens = MOST_MESSAGES, MOST_TOKENS
    for call in sorted(calls, key=attrgetter("seq"), reverse=True):
        messages -= sum(last - first + 1 for first, last in call.refs["window"])
        tokens -= call.tokens_estimated
        if found and min(messages, tokens) < 0:
            break
        call.conversation = conversation
        found.append(call)
    return found[::-1]


def _add_costs(found: Sequence[Costs]) -> Costs:
    if len(found) == 1:
        return found[0]
    parts = []
    for name in PARTS:
        same = [part for each in found for part in each.parts if part.name == name]
        if same:
            sizes = ((part.tokens, part.cached, part.price) for part in same)
            parts.append(Part(name, *map(sum, zip(*sizes, strict=True))))
    known = [each.cached for each in found if each.cached is not None]
    return Costs(
        parts,
        sum(each.uncounted for each in found),
        sum(each.total for each in found),
        all(each.is_reported for each in found),
        sum(known) if known else None,
        sum(each.price for each in found),
    )


def _find_unused(
    conversation: Conversation, turns: Sequence[Sequence[Any]]
) -> UnusedTools | None:
    """Return tools of the next request that the latest turns offered and none called.

    Each was offered in TELLING_TURNS turns or more, up to the newest. None if
    there are no such tools.
    """
    # Without the search for tools, which no user has turned on.
    offered = registry.list_offered(conversation)
    names = [name for name in offered if name in conversation.tools]
    if not names or len(turns) < TELLING_TURNS:
        return None
    first = turns[0][0].refs.get("newest") or turns[0][0].seq
    asked = conversation.messages.filter(seq__gte=first).exclude(tool_calls=[])
    called = {
        call["name"]
        for calls in asked.values_list("tool_calls", flat=True)
        for call in calls
    }
    # Count back from the newest turn as long as the tool was offered.
    kept = [name for name in names if name not in called]
    reach = {name: _count_offered(name, turns) for name in kept}
    kept = [name for name in kept if reach[name] >= TELLING_TURNS]
    if not kept:
        return None
    sizes = registry.count_tool_tokens(kept)
    return UnusedTools(kept, sum(sizes.values()), min(reach[name] for name in kept))


def _count_offered(name: str, turns: Sequence[Sequence[Any]]) -> int:
    offered = (all(name in _list_offered(c) for c in turn) for turn in reversed(turns))
    return len([*takewhile(bool, offered)])


@dataclass(frozen=True, slots=True)
class Bar:
    """A segment of the strip: its part, and its position."""

    name: str
    title: str
    tokens: int
    y: int
    height: int


def draw_strip(history: CostHistory) -> Iterator[tuple[TurnCosts, list[Bar]]]:
    """Yield the bars of each turn from the bottom up, scaled to the largest turn."""
    most = max(history.most, 1)
    for turn in history.turns:
        end, bars = 0, []
        pieces = [(part.name, part.title, part.tokens) for part in turn.costs.parts]
        for name, title, count in [*pieces, ("uncounted", "", turn.costs.uncounted)]:
            low = end * PERMILLE // most
            end += max(0, count)
            high = end * PERMILLE // most
            bars.append(Bar(name, title, count, PERMILLE - high, high - low))
        yield turn, [bar for bar in bars if bar.height]


def history_to_json(history: CostHistory) -> dict[str, Any]:
    turns = []
    for turn in history.turns:
        costs = asdict(turn.costs)
        named = {"created_at": turn.at, "tokens": costs.pop("total")}
        turns.append({"reply": turn.seq, **named, **costs})
    return {"turns": turns, "unused_tools": history.unused and asdict(history.unused)}
