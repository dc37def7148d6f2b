"""The view of a thread that an agent's request gets, made fresh for each request."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from langchain_core.messages import BaseMessage, HumanMessage

from ..engine import important_patterns
from ..engine.compose import (
    Context,
    Kind,
    Section,
    SummaryBlock,
    compose,
    fit,
    make_fence,
)
from ..engine.cut_points import (
    find_cut_points,
    find_newest_question,
    find_open_question,
)
from ..engine.policy import Policy
from ..engine.tokens import TokenCounter
from . import shorten, threads, tool_rounds
from .recall import Recall, numbered
from .stores import ThreadMemory

NOTE = (
    "({:,} messages are left out here, as there is no room for them and no summary of "
    "them yet. They are whole in the thread.)"
)


@dataclass(frozen=True, slots=True)
class View:
    """What a request shows of a thread, without its ceiling.

    `window` are the messages of `body` that no summary covers, in the thread's order.
    `around` counts the tokens of all else that the request shows.
    """

    context: Context
    body: Sequence[BaseMessage]
    cutoff: int
    blocks: Sequence[SummaryBlock]
    window_tokens: int
    around: int

    @property
    def window(self) -> Sequence[BaseMessage]:
        return self.body[self.cutoff :]

    @property
    def tokens(self) -> int:
        return self.window_tokens + self.around


class Viewer:
    """Puts the view together, and makes it smaller where it has to be."""

    def __init__(self, count_tokens: TokenCounter) -> None:
        self.count_tokens = count_tokens
        self._recall = Recall(count_tokens)

    def compose(
        self, messages: Sequence[BaseMessage], memory: ThreadMemory, policy: Policy
    ) -> View:
        head, body = threads.split_system(messages)
        active = threads.find_active(memory, body)
        cutoff = active[-1].block.last_seq if active else 0
        window = body[cutoff:]
        asked = find_open_question(body)
        # A summary may cover the newest question: it is sent all the same.
        is_covered = 0 <= asked < cutoff
        question = tool_rounds.repair(body[asked : asked + 1]) if is_covered else []
        start = 0 if question else (find_cut_points(window) or [0])[-1]
        older, turn = map(tool_rounds.repair, (window[:start], window[start:]))
        if policy.truncate_tool_args:
            older = shorten.clip_tool_args(older, policy.truncate_tool_args)
        covered = dict(enumerate(body[:cutoff], start=1))
        if question:
            # While it is answered, it is no message of the past.
            del covered[asked + 1]
        blocks = [segment.block for segment in active]
        context = compose(
            system_prompt="",
            blocks=blocks,
            pinned=_find_important(covered, policy),
            window=older,
            recalled=self._recall.find(body, active, asked, policy.recall_tokens),
            fence=make_fence(policy.final_prompt),
        )
        sections = [Section("system", tuple(head)), *context.sections]
        # All that answers the newest message stays with it, whatever is left out.
        sections.append(Section("newest", (*question, *turn)))
        filled = tuple(section for section in sections if section.messages)
        shown = (s.messages for s in filled if s.kind not in ("window", "newest"))
        return View(
            Context(filled),
            body,
            cutoff,
            blocks,
            window_tokens=self.count_tokens([*older, *turn]),
            around=self.count_tokens([*chain.from_iterable(shown), *question]),
        )

    def squeeze(self, view: View, limit: int) -> list[BaseMessage]:
        """The messages of the view in `limit` tokens, as far as that can be.

        What was recalled goes first, then the oldest turns. The messages of the running
        turn are shortened; then pinned ones go, and its oldest rounds. The newest
        question stays, word for word. A note says how many messages are left out.
        """
        limit -= self.count_tokens([_note(len(view.body))])
        places = {id(message): n for n, message in enumerate(view.body, start=1)}

        def is_over(context: Context) -> bool:
            return self.count_tokens(context.messages) > limit

        def cut(context: Context, *, newest: bool = False) -> Context:
            excess = self.count_tokens(context.messages) - limit
            turn = context.section("newest")
            count = self.count_tokens
            shorter = shorten.shorten(turn, excess, count, places, newest=newest)
            return _change(context, "newest", shorter)

        fitted = fit(view.context, limit, self.count_tokens)
        context = cut(fitted)
        if is_over(context):
            fitted = _change(fitted, "pinned", ())
            context = cut(fitted)
        if is_over(context):
            turn = context.section("newest")
            starts = tool_rounds.find_rounds(turn) or [0]
            rounds = starts[:-1]
            first = bisect_left(
                rounds, True, key=lambda n: not is_over(_without_rounds(context, n))
            )
            context = _without_rounds(context, starts[first])
            fitted = _without_rounds(fitted, starts[first])
        if is_over(context):
            context = cut(fitted, newest=True)
        if is_over(context):
            context = _without_rounds(context, len(view.body))
        left_out = _count_open(view.context) - _count_open(context)
        if not left_out:
            return context.messages
        covered = sum(map(len, map(context.section, ("system", "summaries", "pinned"))))
        before, after = context.messages[:covered], context.messages[covered:]
        return [*before, _note(left_out), *after]


def _find_important(
    covered: Mapping[int, BaseMessage], policy: Policy
) -> list[BaseMessage]:
    if not policy.important:
        return []
    search = important_patterns.Search(policy.important)
    return [
        numbered(seq, message)
        for seq, message in covered.items()
        if search.occurs(message.text)
    ]


def _without_rounds(context: Context, start: int) -> Context:
    """Without what comes before `start` in the newest turn, but for its question."""
    turn = context.section("newest")
    asked = find_newest_question(turn)
    kept = [message for n, message in enumerate(turn) if n >= start or n == asked]
    return _change(context, "newest", kept)


def _change(context: Context, kind: Kind, messages: Sequence[BaseMessage]) -> Context:
    sections = (
        replace(each, messages=tuple(messages)) if each.kind == kind else each
        for each in context.sections
    )
    return Context(tuple(section for section in sections if section.messages))


def _count_open(context: Context) -> int:
    """The messages in it that no summary covers, and the newest question."""
    return len(context.section("window")) + len(context.section("newest"))


def _note(count: int) -> HumanMessage:
    return HumanMessage(NOTE.format(count))
