"""Plays a conversation through a system and counts; the figures are replay's own.

What a system did is read from the log of its two models, never from its inside.
"""

import re
from collections.abc import Sequence
from itertools import zip_longest

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from memory.engine.search.archive import MessageIndex
from memory.engine.search.ranking import Document
from memory.engine.tokens import count_text, count_tokens
from memory.evaluation.metrics import Tally, count_cacheable, shared_tokens
from memory.evaluation.replay import (
    RECALLED,
    RecordedConversation,
    RecordedQuestion,
    has_number,
)

from .ledger import Ledger, plain_texts
from .models import ChatRequest, SummaryRequest, hash_requests
from .systems.base import System

PROBE = "What did we talk about?"
SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


class Meter:
    """One conversation of one system. `lost`: messages that left the window and stand
    behind no summary the model is shown at the end.
    """

    def __init__(self, system: System, recording: RecordedConversation) -> None:
        self.system = system
        self.recording = recording
        self.messages = [
            to_message(seq, each.role, each.content, created_at=each.created_at)
            for seq, each in enumerate(recording.messages, start=1)
        ]
        self.ledger = Ledger()
        self.sent: list[BaseMessage] = []
        self.probed: list[BaseMessage] = []
        # Of each request, the probe's too.
        self.hashes: list[str] = []
        self.tally = Tally()
        self.lost = 0

    def play(self) -> Tally:
        turns = list(split_turns(self.messages))
        for turn, following in zip_longest(turns, turns[1:]):
            start = len(self.system.log)
            reply = turn[1] if len(turn) > 1 else to_message(0, "assistant", "")
            for message in turn:
                self.ledger.add(message)
            self.system.play(turn[0], reply)
            self._count_turn(turn[0], self.system.log[start:])
            start = len(self.system.log)
            upcoming = following[0] if following else turn[-1]
            self.system.rest(upcoming.additional_kwargs.get("created_at"))
            self._count_summaries(self.system.log[start:])
        self.probed = self._probe()
        self.hashes = hash_requests(self.system.log)
        self._examine(self.probed)
        return self.tally

    def _count_turn(
        self, asked: BaseMessage, events: list[ChatRequest | SummaryRequest]
    ) -> None:
        prompt = next(
            event.prompt for event in events if isinstance(event, ChatRequest)
        )
        tokens = count_tokens(prompt)
        self.tally.turns += 1
        self.tally.prompts.append(tokens)
        self.tally.prompt_tokens += tokens
        self.tally.cached_tokens += count_cacheable(shared_tokens(self.sent, prompt))
        self.tally.blocked_turns += isinstance(events[0], SummaryRequest)
        self.tally.without_user_message += prompt[-1].text != asked.text
        self.sent = prompt
        self._count_summaries(events)

    def _count_summaries(self, events: list[ChatRequest | SummaryRequest]) -> None:
        for event in events:
            if isinstance(event, SummaryRequest):
                self.tally.summary_tokens_in += count_tokens(event.request)
                shared = shared_tokens(self.sent, event.request)
                self.tally.summary_tokens_cached += count_cacheable(shared)
                self.tally.summary_tokens_out += count_text(event.text)
                self.ledger.read(event)

    def _probe(self) -> list[BaseMessage]:
        """Return the request for one more question; its cost is not counted."""
        start, number = len(self.system.log), len(self.messages) + 1
        self.system.play(
            to_message(number, "user", PROBE), to_message(number + 1, "assistant", "")
        )
        events = self.system.log[start:]
        for event in events:
            if isinstance(event, SummaryRequest):
                self.ledger.read(event)
        return next(event.prompt for event in events if isinstance(event, ChatRequest))

    def _examine(self, prompt: list[BaseMessage]) -> None:
        window = {
            int(id_)
            for message in prompt
            if self.ledger.texts.get(id_ := str(message.id)) == message.text
        }
        behind = [str(n) for n in range(1, len(self.messages) + 1) if n not in window]
        carried = self.ledger.carried_by(plain_texts(prompt))
        self.tally.rewrites = [carried[id_] for id_ in behind if id_ in carried]
        self.tally.never_read = sum(not self.ledger.was_read(id_) for id_ in behind)
        self.lost = sum(id_ not in carried for id_ in behind)
        self._put_questions(window)

    def _put_questions(self, window: set[int]) -> None:
        places = {each.id: n for n, each in enumerate(self.recording.messages, 1)}
        archive = MessageIndex(
            Document.from_text(seq, each.role, each.content, each.created_at)
            for seq, each in enumerate(self.recording.messages, start=1)
            if seq not in window
        )
        now = self.recording.messages[-1].created_at
        for asked in self.recording.qa:
            evidence = {places[id_] for id_ in asked.evidence_ids if id_ in places}
            if evidence:
                hits = archive.search(asked.question, limit=RECALLED, at=now)
                found = window.union(hit.seq for hit in hits)
                self.tally.in_window.append(len(evidence & window) / len(evidence))
                self.tally.reachable.append(len(evidence & found) / len(evidence))
            if newest := places.get(asked.newest_id):
                is_there = self._shows(newest, asked)
                self.tally.newest_in_request.append(is_there)

    def _shows(self, newest: int, asked: RecordedQuestion) -> bool:
        """Return whether a request with this question gives the newest value where its
        message is, or is quoted; or, in a summary, with the whole sentence that states
        it.
        """
        request = [*self.probed, *self.system.recall(asked.question)]
        texts = [m.text for m in request if str(m.id) == str(newest)]
        if any(has_number(text, asked.newest_value) for text in texts):
            return True
        everything = " ".join(" ".join(plain_texts(self.probed)).split())
        sentences = SENTENCE.split(self.ledger.texts[str(newest)])
        return any(
            " ".join(sentence.split()) in everything
            for sentence in sentences
            if has_number(sentence, asked.newest_value)
        )


def to_message(seq: int, role: str, text: str, **known: object) -> BaseMessage:
    kind = HumanMessage if role == "user" else AIMessage
    return kind(
        text, id=str(seq), additional_kwargs={k: v for k, v in known.items() if v}
    )


def split_turns(messages: Sequence[BaseMessage]) -> list[list[BaseMessage]]:
    """Each user message with its reply; what stands before the first has no turn."""
    turns: list[list[BaseMessage]] = []
    for message in messages:
        if isinstance(message, HumanMessage):
            turns.append([message])
        elif turns:
            turns[-1].append(message)
    return turns
