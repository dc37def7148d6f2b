"""The view of a thread for an agent's request, made fresh for each request."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from langchain_core.messages import BaseMessage, HumanMessage

from ..engine import important_patterns
from ..engine.compose import (
    Context,
    Section,
    SummaryBlock,
    compose_context,
    fit_context,
    make_fence,
)
from ..engine.cut_points import (
    find_cut_points,
    find_newest_question,
    find_open_question,
)
from ..engine.policy import Policy
from ..engine.tokens import TokenCounter, count_text
from ..engine.tools import rounds, shorten
from . import threads
from .recall import Recall, copy_numbered
from .stores import ThreadMemory

NOTE = (
    "({:,} messages are left out here, as there is no room for them and no summary of "
    "them yet. They are whole in the thread.)"
)
ORPHANS_NOTE = (
    "(This thread holds nothing but results of tools whose calls are missing. They are "
    "left out here.)"
)
SUMMARIES_NOTE = (
    "(The first {:,} messages and their summaries are left out here, as there is no "
    "room for them. They are whole in the thread.)"
)
CALLS_NOTE = (
    "({:,} more calls of this round are left out here with their results, as there is "
    "no room for them. They are whole in the thread.)"
)


@dataclass(frozen=True, slots=True)
class AgentView:
    """The content of a request on a thread, without its ceiling.

    `window` are the messages of `body` that no summary covers, in the thread's order.
    `around` counts the tokens of the rest of the request. In old rounds of the newest
    turn, arguments of more than `most_argument` characters go where room is needed; 0 =
    they are like others.
    """

    context: Context
    body: Sequence[BaseMessage]
    cutoff: int
    blocks: Sequence[SummaryBlock]
    window_tokens: int
    around: int
    most_argument: int = 0

    @property
    def window(self) -> Sequence[BaseMessage]:
        return self.body[self.cutoff :]

    @property
    def tokens(self) -> int:
        return self.window_tokens + self.around


class Viewer:
    """The composer of views, which also makes them smaller where needed."""

    def __init__(self, count_tokens: TokenCounter) -> None:
        self.count_tokens = count_tokens
        self._recall = Recall(count_tokens)

    def compose_view(
        self, messages: Sequence[BaseMessage], memory: ThreadMemory, policy: Policy
    ) -> AgentView:
        head, body = threads.split_system(messages)
        active = threads.find_active(memory, body)
        cutoff = active[-1].block.last_seq if active else 0
        window = body[cutoff:]
        asked = find_open_question(body)
        # A summary may cover the newest question, which is still sent.
        is_covered = 0 <= asked < cutoff
        question = rounds.repair_rounds(body[asked : asked + 1]) if is_covered else []
        start = 0 if question else (find_cut_points(window) or [0])[-1]
        older, turn = map(rounds.repair_rounds, (window[:start], window[start:]))
        if policy.truncate_tool_args:
            older = shorten.clip_tool_args(older, policy.truncate_tool_args)
        covered = dict(enumerate(body[:cutoff], start=1))
        if question:
            # While it is answered, it is no message of the past.
            del covered[asked + 1]
        blocks = [segment.block for segment in active]
        context = compose_context(
            system_prompt="",
            blocks=blocks,
            pinned=_find_important(covered, policy),
            window=older,
            recalled=self._recall.find_notes(body, active, asked, policy.recall_tokens),
            fence=make_fence(policy.final_prompt),
        )
        sections = [Section("system", tuple(head)), *context.sections]
        # The answers to the newest message stay with it, whatever is left out.
        sections.append(Section("newest", (*question, *turn)))
        filled = tuple(section for section in sections if section.messages)
        if body and not filled:
            filled = (Section("newest", (HumanMessage(ORPHANS_NOTE),)),)
        shown = (s.messages for s in filled if s.kind not in ("window", "newest"))
        return AgentView(
            Context(filled),
            body,
            cutoff,
            blocks,
            window_tokens=self.count_tokens([*older, *turn]),
            around=self.count_tokens([*chain.from_iterable(shown), *question]),
            most_argument=policy.truncate_tool_args,
        )

    def squeeze_view(self, view: AgentView, limit: int) -> list[BaseMessage]:
        """Return the messages of the view in `limit` tokens, as far as possible.

        Recalled messages are removed first, then the oldest turns. The messages of the
        running turn are shortened; then pinned ones are removed, its oldest rounds, the
        last calls of the newest round, and the summaries. The newest question stays,
        word for word. Notes say how many messages and calls are left out.
        """
        return _ContextShrinker(view, limit, self.count_tokens).fit()


class _ContextShrinker:
    """A view and its limit, to make the context smaller until it fits."""

    def __init__(self, view: AgentView, limit: int, count_tokens: TokenCounter) -> None:
        self.view = view
        self.limit = limit
        self.count_tokens = count_tokens
        self.places = {id(message): n for n, message in enumerate(view.body, start=1)}

    def fit(self) -> list[BaseMessage]:
        for context in self.shrink():
            messages = self.add_notes(context)
            if self.count_tokens(messages) <= self.limit:
                break
        return messages

    def add_notes(self, context: Context) -> list[BaseMessage]:
        """Return the context's messages, with notes on messages left out."""
        notes = []
        had_summaries = self.view.context.get_section("summaries")
        if had_summaries and not context.get_section("summaries"):
            notes.append(HumanMessage(SUMMARIES_NOTE.format(self.view.cutoff)))
        if left_out := _count_open(self.view.context) - _count_open(context):
            notes.append(HumanMessage(NOTE.format(left_out)))
        place = sum(
            map(len, map(context.get_section, ("system", "summaries", "pinned")))
        )
        return [*context.messages[:place], *notes, *context.messages[place:]]

    def is_over(self, context: Context) -> bool:
        return self.count_tokens(self.add_notes(context)) > self.limit

    def shrink(self) -> Iterator[Context]:
        """Yield contexts with less and less content."""
        note = HumanMessage(NOTE.format(len(self.view.body)))
        limit = self.limit - self.count_tokens([note])
        fitted = fit_context(self.clip_old_rounds(), limit, self.count_tokens)
        yield self.cut(fitted)
        fitted = fitted.with_section("pinned", ())
        shorter = self.cut(fitted)
        yield shorter
        starts = rounds.find_rounds(shorter.get_section("newest")) or [0]
        first = bisect_left(
            starts[:-1],
            True,
            key=lambda start: not self.is_over(_without_rounds(shorter, start)),
        )
        yield _without_rounds(shorter, starts[first])
        fitted = _without_rounds(fitted, starts[first])
        for some in (fitted, fitted.with_section("summaries", ())):
            yield self.cut(some, newest=shorten.LEVELS)
            yield from self.keep_fewer_calls(some)
        yield _without_rounds(some, len(self.view.body))

    def clip_old_rounds(self) -> Context:
        """Return the context with the policy's limit on arguments in old rounds."""
        context, most = self.view.context, self.view.most_argument
        turn = context.get_section("newest")
        start = (rounds.find_rounds(turn) or [0])[-1] if most else 0
        clipped = shorten.clip_tool_args(turn[:start], most)
        for message, shorter in zip(turn, clipped, strict=False):
            if id(message) in self.places:
                self.places[id(shorter)] = self.places[id(message)]
        return context.with_section("newest", [*clipped, *turn[start:]])

    def keep_fewer_calls(self, context: Context) -> Iterator[Context]:
        """Yield contexts with fewer calls of the newest round.

        They have the beginnings of as many results as there is room for. The other
        calls are left out with their results: alone, each would still take its id, name
        and arguments.
        """
        turn = context.get_section("newest")
        start = (rounds.find_rounds(turn) or [0])[-1]
        count = len(rounds.calls_of(turn[start])) if turn else 0
        if count < 2:
            return

        def keep(kept: int, levels: Sequence[int]) -> Context:
            note = CALLS_NOTE.format(count - kept)
            fewer = context.with_section("newest", rounds.keep_calls(turn, start, kept))
            shorter = self.cut(fewer, newest=levels, spare=count_text(note))
            shown = list(shorter.get_section("newest"))
            shown[start + kept] = shorten.add_note(shown[start + kept], note)
            return shorter.with_section("newest", shown)

        counts = range(count - 1, 0, -1)
        first = bisect_left(
            counts[:-1],
            True,
            key=lambda kept: not self.is_over(keep(kept, shorten.BEGINNINGS)),
        )
        yield keep(counts[first], shorten.BEGINNINGS)
        yield keep(1, shorten.LEVELS)

    def cut(
        self, context: Context, *, newest: Sequence[int] = (), spare: int = 0
    ) -> Context:
        excess = self.count_tokens(self.add_notes(context)) + spare - self.limit
        turn, count = context.get_section("newest"), self.count_tokens
        order = shorten.order_turn_cuts(turn, newest=newest)
        shorter, _ = shorten.cut_down(turn, excess, count, self.places, order)
        return context.with_section("newest", shorter)


def _find_important(
    covered: Mapping[int, BaseMessage], policy: Policy
) -> list[BaseMessage]:
    if not policy.important:
        return []
    search = important_patterns.PatternSearch(policy.important)
    return [
        copy_numbered(seq, message)
        for seq, message in covered.items()
        if search.has_match(message.text)
    ]


def _without_rounds(context: Context, start: int) -> Context:
    """Return the context without rounds before `start`; the question stays."""
    turn = context.get_section("newest")
    asked = find_newest_question(turn)
    kept = [message for n, message in enumerate(turn) if n >= start or n == asked]
    return context.with_section("newest", kept)


def _count_open(context: Context) -> int:
    """Count its messages that no summary covers, and the newest question."""
    return len(context.get_section("window")) + len(context.get_section("newest"))
