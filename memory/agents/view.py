"""The view of a thread that an agent's request gets, made fresh for each request."""

from collections.abc import Sequence
from dataclasses import replace
from threading import Lock

from langchain_core.messages import BaseMessage

from memory.engine import excerpts, important_patterns
from memory.engine.compose import (
    Context,
    Section,
    compose,
    fit,
    make_fence,
    role_of,
)
from memory.engine.cut_points import find_cut_points
from memory.engine.policy import Policy
from memory.engine.ranking import Document, Index
from memory.engine.tokens import TokenCounter

from . import shorten, threads
from .stores import Segment, ThreadMemory

RECALLED = 10
MAX_INDEXES = 8


class Viewer:
    """Puts the view together, and makes it smaller where it has to be."""

    def __init__(self, policy: Policy, count_tokens: TokenCounter) -> None:
        self.policy = policy
        self.count_tokens = count_tokens
        self._indexes: dict[str, Index] = {}
        self._lock = Lock()

    def compose(
        self, messages: Sequence[BaseMessage], memory: ThreadMemory
    ) -> tuple[Context, int]:
        """The context without its ceiling, and the tokens of the messages in it that
        no summary covers."""
        head, body = threads.split_system(messages)
        active = threads.find_active(memory, body)
        cutoff = active[-1].block.last_seq if active else 0
        window = body[cutoff:]
        start = (find_cut_points(window) or [0])[-1]
        older, turn = window[:start], window[start:]
        if self.policy.truncate_tool_args:
            older = shorten.clip_tool_args(older, self.policy.truncate_tool_args)
        looks_back = self.policy.important or self.policy.recall_tokens
        covered = threads.number(body[:cutoff], 1) if looks_back else []
        important = important_patterns.Search(self.policy.important)
        context = compose(
            system_prompt="",
            blocks=[segment.block for segment in active],
            pinned=[each for each in covered if important.occurs(each.text)],
            window=older,
            recalled=self._recall(covered, active, turn),
            fence=make_fence(self.policy.final_prompt),
        )
        sections = [Section("system", tuple(head)), *context.sections]
        # All that answers the newest message stays with it, whatever is left out.
        sections.append(Section("newest", tuple(turn)))
        filled = tuple(section for section in sections if section.messages)
        return Context(filled), self.count_tokens([*older, *turn])

    def count_around(self, context: Context) -> int:
        """The tokens of what stands around the window and the newest turn."""
        around = (s for s in context.sections if s.kind not in ("window", "newest"))
        return self.count_tokens([m for section in around for m in section.messages])

    def _recall(
        self,
        covered: Sequence[BaseMessage],
        active: Sequence[Segment],
        turn: Sequence[BaseMessage],
    ) -> list[BaseMessage]:
        """Messages behind the window that fit the newest one, in their order."""
        room = self.policy.recall_tokens
        if not (room and covered and turn):
            return []
        question = turn[0].text
        hits = self._index(active[-1].digest, covered).search(question, limit=RECALLED)
        chosen = excerpts.choose(
            hits,
            dict(enumerate(covered, start=1)),
            question,
            room=room,
            count_tokens=self.count_tokens,
        )
        return [note.message for note in chosen]

    def _index(self, digest: str, covered: Sequence[BaseMessage]) -> Index:
        """Made once for each compaction, as that is when the archive changes."""
        with self._lock:
            if known := self._indexes.get(digest):
                return known
        index = Index(
            [
                Document.read(seq, role_of(message), message.text)
                for seq, message in enumerate(covered, start=1)
                # A call without words, or an answer cut out, says nothing.
                if message.text
            ]
        )
        with self._lock:
            self._indexes[digest] = index
            while len(self._indexes) > MAX_INDEXES:
                del self._indexes[next(iter(self._indexes))]
        return index

    def squeeze(self, context: Context, limit: int) -> Context:
        """Leave out the oldest turns; then cut the oldest tool results of the last."""
        context = fit(context, limit, self.count_tokens)
        excess = self.count_tokens(context.messages) - limit
        if excess <= 0:
            return context
        turn = context.section("newest")
        shorter = shorten.clip_tool_results(turn, excess, self.count_tokens)
        last = replace(context.sections[-1], messages=tuple(shorter))
        return Context((*context.sections[:-1], last))
