"""The two bars above the sheets, which show how full the model's window is.

In words, they also say when the next compaction is due.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from chatsite.languages import group_thousands
from chatsite.llm import providers
from chatsite.turns.requests import limit_of
from memory import context
from memory.engine import budget
from memory.engine.policy import Policy
from memory.files import passage_source
from memory.models import Conversation

from .sheets import WORDS

if TYPE_CHECKING:
    from .context_pane import ContextSection

AHEAD_OF_WINDOW = (
    *("held", "only_there", "tools", "provider", "system", "summaries", "pinned"),
    *("facts", "rules"),
)
TITLES = {
    **WORDS,
    "steps": gettext_lazy("Tool calls so far"),
    "reserve": gettext_lazy("Reserved for the reply"),
    "free": gettext_lazy("Free"),
}


@dataclass(frozen=True, slots=True)
class BarSegment:
    """One piece of the token bar. `x` and `width` are permille of the bar."""

    kind: str  # the sections' kinds, then reserve and free
    title: str
    tokens: int
    x: int
    width: int


@dataclass(frozen=True, slots=True)
class Gauge:
    """Two bars: the request in the model's window, and the way to the next compaction.

    The second bar shows what the compaction is measured by.
    """

    segments: tuple[BarSegment, ...]
    used: int
    capacity: int
    reserve: int  # reserved for the reply
    # The place on the bar of a trigger by the share of it, in permille; None = none.
    compact_x: int | None = None
    # The second bar. Compaction starts when the window has so many tokens; None = not
    # by tokens, and no bar.
    window_limit: int | None = None
    window_tokens: int = 0  # the newest message, or draft, will be part of it
    window_segments: tuple[BarSegment, ...] = ()


def make_gauge(
    conversation: Conversation,
    policy: Policy,
    sections: Sequence["ContextSection"],
    model: str,
) -> Gauge:
    used = sum(section.tokens for section in sections)
    window, limit = providers.context_window(model), limit_of(model)
    reserve, scale = window - limit, max(window, used)
    sizes = [(section.kind, section.tokens) for section in sections]
    sizes += [("free", max(0, scale - used - reserve)), ("reserve", reserve)]
    # The smallest triggers that fire alone: on the window's tokens, on the share of
    # the model's whole window that the context takes.
    clauses = policy.trigger if policy.enabled else ()
    alone = [clause[0] for clause in clauses if len(clause) == 1]
    window_limit = min((int(n) for kind, n in alone if kind == "tokens"), default=None)
    fraction = min((n for kind, n in alone if kind == "fraction"), default=None)
    counted = [(kind, tokens) for kind, tokens in sizes if kind in ("window", "newest")]
    in_window = sum(tokens for _kind, tokens in counted)
    if window_limit:
        # Where less than that fits, compaction starts earlier.
        within = context.policy_within(conversation, policy, limit)
        ahead = sum(part.tokens for part in sections if part.kind in AHEAD_OF_WINDOW)
        ahead += passage_source.find_room(conversation, limit)
        most = budget.for_window(within, limit, ahead, is_waiting=False)
        window_limit = min(window_limit, most)
    return Gauge(
        tuple(_make_segments(sizes, scale)),
        used,
        window,
        reserve,
        int(fraction * window) * 1000 // scale if fraction else None,
        window_limit,
        in_window,
        tuple(_make_segments(counted, max(window_limit or 0, in_window, 1))),
    )


def _make_segments(sizes: list[tuple[str, int]], scale: int) -> Iterator[BarSegment]:
    start = 0
    for kind, tokens in sizes:
        x, end = start * 1000 // scale, min(1000, (start + tokens) * 1000 // scale)
        yield BarSegment(kind, TITLES[kind], tokens, x, max(0, end - x))
        start += tokens


def describe_trigger_rule(policy: Policy, most: int | None) -> str:
    """Return the trigger of compaction in words, or "". `most`: tokens that fit."""
    if not policy.enabled:
        return ""
    both, either = _("%(first)s and %(second)s"), _("%(first)s or %(second)s")
    rule = ""
    for clause in policy.trigger:
        words = ""
        for size in clause:
            condition = _describe_condition(size, most)
            words = both % {"first": words, "second": condition} if words else condition
        rule = either % {"first": rule, "second": words} if rule else words
    return rule


def _describe_condition(size: tuple[str, int | float], most: int | None) -> str:
    kind, amount = size
    if kind == "tokens" and most:
        amount = min(amount, most)
    if kind == "fraction":
        return _("%(share)s of the model's window") % {"share": f"{amount:.0%}"}
    if kind == "topic":
        return _("a turn with %(share)s new words") % {"share": f"{amount:.0%}"}
    templates = {
        "tokens": ngettext("%(n)s token", "%(n)s tokens", amount),
        "messages": ngettext("%(n)s message", "%(n)s messages", amount),
        "turns": ngettext("%(n)s turn", "%(n)s turns", amount),
        "age": ngettext("%(n)s second old", "%(n)s seconds old", amount),
        "idle": ngettext("%(n)s second idle", "%(n)s seconds idle", amount),
        "important": ngettext(
            "%(n)s important message", "%(n)s important messages", amount
        ),
    }
    return templates[kind] % {"n": group_thousands(amount)}
