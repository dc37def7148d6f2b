"""*The model sees*: the context of the next turn, or of one reply as it was sent, as
plain values for the templates.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from chatsite.languages import thousands
from chatsite.llm import providers
from chatsite.turns.requests import (
    has_request,
    limit_of,
    model_of,
    next_turn,
    reply_call,
)
from memory import context
from memory.compaction import compactor
from memory.engine import budget
from memory.models import Conversation, Message, ModelCall, Summary

from ..forms import preset_name


@dataclass(frozen=True, slots=True)
class Part:
    """One section of the right pane, in the order of the payload."""

    kind: str  # system, summaries, pinned, window, recalled, newest
    title: str
    tokens: int
    messages: tuple[Message, ...] = ()
    summaries: tuple[Summary, ...] = ()
    text: str = ""

    @property
    def last_seq(self) -> int | None:
        return self.messages[-1].seq if self.messages else None


@dataclass(frozen=True, slots=True)
class Segment:
    """One piece of the token bar. `x` and `width` are permille of the bar."""

    kind: str  # the parts' kinds, then reserve and free
    title: str
    tokens: int
    x: int
    width: int


@dataclass(frozen=True, slots=True)
class Gauge:
    segments: tuple[Segment, ...]
    used: int
    capacity: int
    reserve: int  # kept free for the reply
    # Compaction starts when the window has so many tokens; None = not by tokens.
    window_limit: int | None = None
    # The place of the compaction point on the bar, in permille; None = it is not on it.
    compact_x: int | None = None


@dataclass(frozen=True, slots=True)
class ContextPane:
    """The right pane. `reply` is the shown reply's number, None for the next turn."""

    reply: int | None
    parts: tuple[Part, ...]
    gauge: Gauge
    tokens_estimated: int
    # Messages by kind of place, now or when the shown reply was asked for.
    counts: dict[str, int]
    model: str = ""
    is_demo: bool = False
    call: ModelCall | None = None
    verified: bool | None = None
    replies: tuple[int, ...] = ()  # numbers to choose from, newest first
    wire: Sequence[dict[str, Any]] = ()
    sha256: str = ""
    policy: str = ""
    policy_error: str = ""  # why the stored policy is not in force
    compact_rule: str = ""
    compaction_stopped: bool = False

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def accounted(self) -> int:
        missing = ("lost",) if self.reply else ("lost", "unsent")
        return self.total - sum(self.counts.get(kind, 0) for kind in missing)

    @property
    def drift(self) -> str:
        """How far the estimate was from what the provider reported."""
        if self.call is None or not self.call.tokens_input:
            return ""
        reported = self.call.tokens_input
        return f"{(self.call.tokens_estimated - reported) * 100 / reported:+.0f} %"


def model_view(
    conversation: Conversation, *, reply: int | None = None, draft: str = ""
) -> ContextPane:
    """The right pane; `draft` is what is being typed.

    Raises ModelCall.DoesNotExist for a number that is no reply.
    """
    call = None
    if reply is not None:
        call = reply_call(conversation, reply)
        if call is None:
            raise ModelCall.DoesNotExist
    built = context.rebuild(call) if call else next_turn(conversation, draft)
    model = call.model if call else model_of(conversation)
    parts = tuple(_parts(conversation, built, draft, is_past=call is not None))
    gauge = _gauge(conversation, parts, model)
    return ContextPane(
        reply=reply,
        parts=parts,
        gauge=gauge,
        tokens_estimated=built.tokens,
        counts=context.count_sent(call)
        if call
        else context.count_places(conversation, built.refs["left_out"]),
        model=providers.label(model),
        is_demo=providers.is_demo(model),
        call=call or _latest_call(conversation),
        verified=_verify(call, built) if call else None,
        replies=tuple(_replies(conversation)),
        wire=built.wire,
        sha256=built.sha256,
        policy=preset_name(conversation.get_policy().preset),
        policy_error=conversation.policy_error,
        compact_rule=_compact_rule(conversation, gauge.window_limit),
        compaction_stopped=not compactor.may_compact(conversation),
    )


def _verify(call: ModelCall, built: context.Built) -> bool | None:
    """None when it can not be told, because a message was deleted since."""
    same = built.sha256 == call.sha256
    return None if not same and context.is_erased(call) else same


def _latest_call(conversation: Conversation) -> ModelCall | None:
    calls = conversation.model_calls.filter(purpose=ModelCall.Purpose.REPLY)
    return calls.exclude(message=None).order_by("-id").first()


def _replies(conversation: Conversation) -> Iterator[int]:
    """Those whose requests are known; there is nothing to show of the others."""
    rows = conversation.messages.filter(has_request(), role=Message.Role.ASSISTANT)
    return rows.order_by("-seq").values_list("seq", flat=True)[:200].iterator()


AHEAD_OF_WINDOW = ("system", "summaries", "pinned")
TITLES = {
    "system": gettext_lazy("System prompt"),
    "summaries": gettext_lazy("Summaries"),
    "pinned": gettext_lazy("Pinned"),
    "window": gettext_lazy("Window"),
    "recalled": gettext_lazy("Recalled"),
    "newest": gettext_lazy("Next message"),
    "reserve": gettext_lazy("Reserved for the reply"),
    "free": gettext_lazy("Free"),
}


def _title(kind: str, is_past: bool) -> str:
    """What was the next message once is not any more."""
    is_newest = is_past and kind == "newest"
    return capfirst(_("newest message")) if is_newest else TITLES[kind]


def _parts(
    conversation: Conversation,
    built: context.Built,
    draft: str = "",
    *,
    is_past: bool = False,
) -> Iterator[Part]:
    count_tokens = context.counter(conversation)
    for section in built.context.sections:
        seqs = [int(message.id) for message in section.messages if message.id]
        rows = conversation.messages.filter(seq__in=seqs).order_by("seq")
        messages = tuple(rows) if seqs else ()
        versions_sent = built.refs["summaries"] if section.kind == "summaries" else []
        summaries = conversation.summaries.filter(version__in=versions_sent)
        is_draft = bool(draft) and section.kind == "newest" and not messages
        yield Part(
            kind=section.kind,
            title=_("Your draft") if is_draft else _title(section.kind, is_past),
            tokens=count_tokens(section.messages),
            messages=messages,
            summaries=tuple(summaries.order_by("first_seq")) if versions_sent else (),
            # What is quoted in one message has no rows of its own: its text is shown.
            text="" if messages else str(section.messages[0].content),
        )


def _gauge(conversation: Conversation, parts: Sequence[Part], model: str) -> Gauge:
    """The bar reaches to the compaction point or to what is used, with a little air,
    not to the model's whole window: against 128,000 tokens nothing would be seen. The
    reserve is drawn once it is in sight."""
    used = sum(part.tokens for part in parts)
    window = providers.context_window(model)
    window_limit, fraction = _compact_limits(conversation)
    ahead = sum(part.tokens for part in parts if part.kind in AHEAD_OF_WINDOW)
    # Where less than that fits, compaction starts earlier.
    most = _most_of_window(conversation, model, ahead)
    window_limit = min(window_limit, most) if window_limit else None
    limits = [ahead + window_limit] if window_limit else []
    limits += [int(fraction * window)] if fraction else []
    compact_at = min(limits, default=None)
    reserve = window - limit_of(model)
    scale = max(int(used * 1.1), int((compact_at or 0) * 1.15), 1)
    sizes = [(part.kind, part.tokens) for part in parts]
    if scale + reserve >= window:
        scale = max(window, used)
        sizes += [("free", max(0, scale - used - reserve)), ("reserve", reserve)]
    else:
        sizes += [("free", scale - used)]
    return Gauge(
        tuple(_segments(sizes, scale)),
        used,
        window,
        reserve,
        window_limit,
        compact_at * 1000 // scale if compact_at and compact_at <= scale else None,
    )


def _most_of_window(conversation: Conversation, model: str, around: int) -> int:
    limit = limit_of(model)
    policy = context.policy_within(conversation, conversation.get_policy(), limit)
    return budget.for_window(policy, limit, around, is_waiting=False)


def _segments(sizes: list[tuple[str, int]], scale: int) -> Iterator[Segment]:
    start = 0
    for kind, tokens in sizes:
        x, end = start * 1000 // scale, min(1000, (start + tokens) * 1000 // scale)
        yield Segment(kind, TITLES[kind], tokens, x, max(0, end - x))
        start += tokens


def _compact_limits(conversation: Conversation) -> tuple[int | None, float | None]:
    """The smallest triggers that fire alone: on the window's tokens, on the share of
    the model's whole window that the context takes."""
    alone = [
        clause[0] for clause in conversation.get_policy().trigger if len(clause) == 1
    ]
    tokens = [int(value) for kind, value in alone if kind == "tokens"]
    fractions = [value for kind, value in alone if kind == "fraction"]
    return min(tokens, default=None), min(fractions, default=None)


def _compact_rule(conversation: Conversation, most: int | None) -> str:
    """When the window is compacted, in words; "" = never. `most`: tokens that fit."""
    policy = conversation.get_policy()
    clauses = [
        reduce(
            _joined(_("%(first)s and %(second)s")),
            [_condition(size, most) for size in clause],
        )
        for clause in policy.trigger
    ]
    if not policy.enabled or not clauses:
        return ""
    return reduce(_joined(_("%(first)s or %(second)s")), clauses)


def _joined(template: str) -> Callable[[str, str], str]:
    return lambda first, second: template % {"first": first, "second": second}


def _condition(size: tuple[str, int | float], most: int | None) -> str:
    kind, amount = size
    if kind == "tokens" and most:
        amount = min(amount, most)
    if kind == "fraction":
        return _("%(share)s of the model's window") % {"share": f"{amount:.0%}"}
    templates = {
        "tokens": ngettext("%(n)s token", "%(n)s tokens", amount),
        "messages": ngettext("%(n)s message", "%(n)s messages", amount),
        "turns": ngettext("%(n)s turn", "%(n)s turns", amount),
        "age": ngettext("%(n)s second old", "%(n)s seconds old", amount),
        "idle": ngettext("%(n)s second idle", "%(n)s seconds idle", amount),
    }
    return templates[kind] % {"n": thousands(amount)}
