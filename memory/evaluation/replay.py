"""Recorded conversations, played through a memory policy to measure its costs.

Pure: no database; the summariser comes as a callable. Replies are the recorded ones.
"""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import inf
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import BaseModel, TypeAdapter

from memory.engine import budget
from memory.engine.compaction import MemoryState
from memory.engine.compose import Context, compose_context, make_fence, role_of
from memory.engine.exceptions import SummaryError
from memory.engine.plan import Compaction, Step
from memory.engine.policy import CHUNK_TOKENS, Policy
from memory.engine.rules.keeper import RuleKeeper
from memory.engine.search import excerpts
from memory.engine.search.archive import MessageIndex
from memory.engine.search.ranking import Document, Hit
from memory.engine.summaries.material import read_request
from memory.engine.summaries.summarizer import (
    EARLIER,
    Invoke,
    SummaryText,
    write_summary,
)
from memory.engine.tokens import TokenCounter, count_text, count_tokens
from memory.engine.tools import fitting

from .metrics import Tally, count_cacheable, shared_tokens

TOKENS = "estimated: UTF-8 bytes / 4, rounded up, + 4 per message"
# The number of hits that count as found.
RECALLED = 10


class RecordedMessage(BaseModel):
    id: str
    role: Literal["user", "assistant"]
    content: str
    created_at: datetime | None = None


class RecordedQuestion(BaseModel):
    """A question about a recorded conversation.

    `newest_value` is how the message `newest_id`, the last of the evidence, writes a
    value that has changed; "": no value has changed.
    """

    question: str
    evidence_ids: list[str] = []
    newest_id: str = ""
    newest_value: str = ""


class RecordedConversation(BaseModel):
    """One conversation of a replay file; `qa` are questions about it."""

    id: str
    messages: list[RecordedMessage]
    qa: list[RecordedQuestion] = []


def read_recordings(data: bytes) -> list[RecordedConversation]:
    """Read a replay file; raise ValueError when it is not the documented JSON."""
    return TypeAdapter(list[RecordedConversation]).validate_json(data)


async def replay_recordings(
    recordings: Iterable[RecordedConversation],
    policy: Policy,
    invoke: Invoke,
    *,
    system_prompt: str = "",
    context_window: int | None = None,
) -> dict[str, Any]:
    total = Tally()
    conversations = []
    for recording in recordings:
        player = Player(recording, policy, invoke, system_prompt, context_window)
        tally = await player.play_messages()
        conversations.append({"id": recording.id} | tally.make_report())
        total += tally
    return {
        "preset": policy.preset,
        "tokens": TOKENS,
        "conversations": conversations,
        "total": total.make_report(),
    }


@dataclass(eq=False)
class Player:
    """One conversation, played as on the site: compaction after the reply."""

    recording: RecordedConversation
    policy: Policy
    invoke: Invoke
    system_prompt: str = ""
    context_window: int | None = None

    def __post_init__(self) -> None:
        self.messages: list[BaseMessage] = []
        for seq, each in enumerate(self.recording.messages, start=1):
            kind = HumanMessage if each.role == "user" else AIMessage
            kwargs = {"created_at": each.created_at} if each.created_at else {}
            message = kind(each.content, id=str(seq), additional_kwargs=kwargs)
            self.messages.append(message)
        self.by_number = {_seq_of(message): message for message in self.messages}
        self.summarizer = _RecordingSummarizer(self.invoke)
        self.count_tokens: TokenCounter = count_tokens
        self.chunk_tokens = CHUNK_TOKENS
        self.state = MemoryState(self.policy)
        # A recording confirms no rule.
        self.rules = RuleKeeper(budget.for_rules(self.context_window))
        # Unusable summaries in a row.
        self.failures = 0
        self.sent: list[BaseMessage] = []
        self.sent_with_recall: list[BaseMessage] = []
        self.archive = MessageIndex()
        self.generations: dict[int, int] = {}
        self.tally = Tally()

    async def play_messages(self) -> Tally:
        for place in range(len(self.messages)):
            await self._step(place)
        self.tally.summary_tokens_in = self.summarizer.tokens_in
        self.tally.summary_tokens_cached = self.summarizer.tokens_cached
        self.tally.summary_tokens_out = self.summarizer.tokens_out
        self.tally.rewrites = list(self.generations.values())
        self.tally.never_read = sum(
            self.summarizer.text_of(_seq_of(message)) != message.text
            for message in self.messages
            if _seq_of(message) in self.generations
        )
        self._put_questions()
        return self.tally

    async def _step(self, place: int) -> None:
        """Send one message, and compact what is due after its turn."""
        message = self.messages[place]
        if isinstance(message, HumanMessage):
            await self._ask(message)
        self.state = self.state.add_messages(message)
        upcoming = self.messages[place + 1 : place + 2]
        if not upcoming or isinstance(upcoming[0], HumanMessage):
            last = (upcoming or [message])[0]
            await self._compact(last.additional_kwargs.get("created_at"))

    async def _ask(self, newest: BaseMessage) -> None:
        request = self._compose(self.state.window, newest).messages
        tokens = self.count_tokens(request)
        self.tally.turns += 1
        self.tally.prompts.append(tokens)
        self.tally.prompt_tokens += tokens
        self.tally.cached_tokens += count_cacheable(shared_tokens(self.sent, request))
        self.tally.without_user_message += request[-1] is not newest
        self.sent = request
        self._count_recall(newest, request, tokens)
        self._count_refused(newest)
        if self.policy.rules == "keep":
            self.rules.detect_rules(newest)

    def _compose(
        self,
        window: Sequence[BaseMessage],
        newest: BaseMessage | None = None,
        notes: Sequence[excerpts.RecallNote] = (),
        **others: Any,
    ) -> Context:
        """Return the request that answers `newest`; `others`: its other parts."""
        return compose_context(
            system_prompt=self.system_prompt,
            blocks=self.state.blocks,
            rules=self.rules.blocks,
            window=fitting.prepare_messages(window),
            recalled=[note.message for note in notes],
            newest=newest,
            fence=make_fence(self.policy.final_prompt),
            **others,
        )

    def _count_recall(
        self, newest: BaseMessage, request: list[BaseMessage], tokens: int
    ) -> None:
        """Count the notes that the site finds before a reply.

        No model is asked for them, but they end what a provider can cache.
        """
        if notes := self._find_notes(newest):
            request = self._compose(self.state.window, newest, notes).messages
            self.tally.turns_with_recall += 1
            self.tally.recall_tokens += self.count_tokens(request) - tokens
        shared = shared_tokens(self.sent_with_recall, request)
        self.tally.cached_with_recall += count_cacheable(shared)
        self.sent_with_recall = request

    def _find_notes(self, newest: BaseMessage) -> list[excerpts.RecallNote]:
        cutoff, at = self.state.cutoff, newest.additional_kwargs.get("created_at")
        if not self.policy.recall_tokens or not cutoff:
            return []
        behind = self._between(self.archive.newest + 1, cutoff)
        self.archive.add_documents(map(read_document, behind))
        hits = self.archive.search(newest.text, limit=None, before=cutoff + 1, at=at)
        return self._choose_notes(newest.text, hits, [*self.state.window, newest])

    def _count_refused(self, newest: BaseMessage) -> None:
        """Count messages that the site would refuse, as larger than a request."""
        alone = compose_context(system_prompt=self.system_prompt, newest=newest)
        is_over = self.count_tokens(alone.messages) > (self.context_window or inf)
        self.tally.refused_turns += is_over
        place = self.recording.messages[_seq_of(newest) - 1].id
        size = self.count_tokens([newest])
        self.tally.asked.append((size, f"{self.recording.id} {place}"))

    async def _compact(self, now: datetime | None) -> None:
        """Compact what is due in the time before the next message."""
        while step := self.state.next_step(
            count_tokens=self.count_tokens,
            overhead=count_text(self.system_prompt) + self.state.summary_tokens,
            context_window=self.context_window,
            now=now,
        ):
            self.summarizer.begin_step(step.first_seq, self.generations, self.sent)
            try:
                made = await write_summary(
                    self.summarizer,
                    step,
                    self._between(step.first_seq, step.last_seq),
                    prefix=self._prefix(step),
                    policy=self.policy,
                    count_tokens=self.count_tokens,
                    chunk_tokens=self.chunk_tokens,
                )
            except SummaryError:
                self.failures += 1
                return
            await self._commit(step, made)

    def _prefix(self, step: Step) -> list[BaseMessage]:
        """Return the beginning of the last request, up to the step's messages."""
        window = step.messages if isinstance(step, Compaction) else ()
        return self._compose(window).messages

    async def _commit(self, step: Step, made: SummaryText) -> None:
        self.state = self.state.apply_step(step, made.text)
        self.failures = 0
        for seq in map(_seq_of, self._between(step.first_seq, step.last_seq)):
            self.generations[seq] = self.summarizer.generations.get(seq, 0)

    def _between(self, first: int, last: int) -> list[BaseMessage]:
        """Return the messages of these numbers, some of which may be missing."""
        start = bisect_left(self.messages, first, key=_seq_of)
        return self.messages[start : bisect_right(self.messages, last, key=_seq_of)]

    def _put_questions(self) -> None:
        """Count where the answers to the recording's questions can be found."""
        recording = self.recording
        places = {each.id: n for n, each in enumerate(recording.messages, 1)}
        archive = MessageIndex(map(read_document, self.messages))
        now = recording.messages[-1].created_at if recording.messages else None
        behind_window = self.state.cutoff + 1
        window = set(range(behind_window, len(self.messages) + 1))
        for asked in recording.qa:
            evidence = {places[id_] for id_ in asked.evidence_ids if id_ in places}
            if not evidence:
                continue
            question = asked.question
            hits = archive.search(question, limit=None, before=behind_window, at=now)
            everywhere = archive.search(question, limit=RECALLED, at=now)
            found = [hit.seq for hit in everywhere]
            behind = [hit.seq for hit in hits[:RECALLED]]
            if newest := places.get(asked.newest_id):
                shown = self._show(question, hits).get(newest, "")
                is_there = has_number(shown, asked.newest_value)
                self.tally.newest_in_request.append(is_there)
            for shares, seqs in (
                (self.tally.in_window, window),
                (self.tally.reachable, window.union(behind)),
                (self.tally.recall_at_5, found[:5]),
                (self.tally.recall_at_10, found),
            ):
                shares.append(len(evidence.intersection(seqs)) / len(evidence))

    def _show(self, question: str, hits: list[Hit]) -> dict[int, str]:
        """Return what a request with this question shows of messages, by number."""
        notes = self._choose_notes(question, hits, self.state.window)
        quoted = (note.message for note in notes)
        return {_seq_of(each): each.text for each in (*self.state.window, *quoted)}

    def _choose_notes(
        self, question: str, hits: Sequence[Hit], later: Sequence[BaseMessage]
    ) -> list[excerpts.RecallNote]:
        return excerpts.choose_excerpts(
            hits,
            {
                hit.seq: self.by_number[hit.seq]
                for hit in hits
                if hit.seq in self.by_number
            },
            question,
            room=self.policy.recall_tokens,
            count_tokens=self.count_tokens,
            later=later,
        )


def read_document(message: BaseMessage) -> Document:
    at = message.additional_kwargs.get("created_at")
    return Document.from_text(_seq_of(message), role_of(message), message.text, at)


def has_number(text: str, number: str) -> bool:
    """Return whether the number is in the text, and not in another number."""
    return bool(re.search(rf"(?<![\d.,:-]){re.escape(number)}(?![\d:-]|[.,]\d)", text))


class _RecordingSummarizer:
    """The summariser, with a record of what it was given to read.

    `generations`: how often the text about each message was written, once the summary
    of the present step is in force.
    """

    def __init__(self, invoke: Invoke) -> None:
        self.invoke = invoke
        self.requests = self.tokens_in = self.tokens_out = self.tokens_cached = 0
        self.sent: list[BaseMessage] = []
        self.parts: dict[int, dict[str, str]] = defaultdict(dict)
        self.generations: dict[int, int] = {}
        self.first = 0
        self.read: set[int] = set()

    @property
    def takes_schema(self) -> bool:
        return getattr(self.invoke, "takes_schema", False)

    def begin_step(
        self, first: int, generations: dict[int, int], sent: list[BaseMessage]
    ) -> None:
        """Begin a step whose summary will cover the messages from `first` on.

        `sent`: the messages that the provider has in its cache.
        """
        self.first, self.generations, self.sent = first, dict(generations), sent
        self.read.clear()

    async def __call__(self, messages: list[BaseMessage], **options: Any) -> AIMessage:
        reply = await self.invoke(messages, **options)
        self.requests += 1
        self.tokens_in += count_tokens(messages)
        self.tokens_out += count_text(reply.text)
        self.tokens_cached += count_cacheable(shared_tokens(self.sent, messages))
        self._note(read_request(messages) or {})
        return reply

    def _note(self, document: dict[str, Any]) -> None:
        rewritten: set[int] = set()
        for each in document.get("summaries", []):
            first, _, last = each["messages"].partition("-")
            if first == EARLIER:
                rewritten |= self._earlier()
            start = self.first if first == EARLIER else int(first)
            rewritten |= set(range(start, int(last or 0) + 1))
        if document.get("previous_summary"):
            rewritten |= self._earlier() | self.read
        for seq in rewritten & self.generations.keys():
            self.generations[seq] += 1
        for read in document.get("messages", []):
            self.parts[read["n"]][read.get("part", "")] = read["text"]
            self.generations[read["n"]] = 1
            self.read.add(read["n"])

    def _earlier(self) -> set[int]:
        """Return the messages that only an earlier summary covers."""
        return {seq for seq in self.generations if seq >= self.first} - self.read

    def text_of(self, seq: int) -> str:
        return "".join(self.parts[seq].values())


def _seq_of(message: BaseMessage) -> int:
    return int(message.id or 0)
