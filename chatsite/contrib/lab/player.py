"""The player of stored conversations, which writes nothing.

It plays their messages through a policy, and composes the requests that the
site would have sent under it.
"""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime
from math import ceil
from typing import Any

from channels.db import database_sync_to_async
from langchain_core.messages import BaseMessage, HumanMessage

from chatsite.llm import providers
from chatsite.turns import requests
from memory import context
from memory.compaction.commit import MAX_PINNED
from memory.compaction.lease import MAX_FAILURES
from memory.engine.compaction import find_important
from memory.engine.compose import fit_context
from memory.engine.plan import Step
from memory.engine.policy import Policy
from memory.engine.search.excerpts import RecallNote
from memory.engine.summaries.summarizer import Invoke, SummaryText
from memory.engine.tokens import TokenCounter, count_message
from memory.engine.tools import fitting
from memory.evaluation.replay import Player, RecordedConversation
from memory.models import Conversation, Message, ModelCall
from memory.ranges import in_ranges
from memory.search import recall


class StoredPlayer(Player):
    """Plays rows of a conversation, with the search and the limits of the site.

    Requests are composed for `model`. All data it needs from the database is read
    when it is created.
    """

    def __init__(
        self,
        conversation: Conversation,
        rows: Iterable[Message],
        policy: dict[str, Any],
        model: str,
        invoke: Invoke,
        chunk_tokens: int,
    ) -> None:
        super().__init__(
            RecordedConversation(id="", messages=[]),
            Policy.load(policy),
            invoke,
            context.find_system_prompt(conversation),
            providers.context_window(model),
        )
        self.conversation = conversation
        by_row = [(row, row.to_langchain()) for row in rows]
        self.messages = [message for _row, message in by_row]
        self.by_number = {int(message.id or 0): message for message in self.messages}
        # The times at which the user pinned messages, by number.
        self.pins = {row.seq: row.pinned_at for row, _ in by_row if row.pinned_at}
        # The messages that the policy has pinned so far.
        self.important: list[int] = []
        # Maximum tokens of a request.
        self.limit = requests.limit_of(model)
        self.chunk_tokens = chunk_tokens
        self.count_tokens = count_known(self.messages, conversation.token_ratio)

    async def compose_request(
        self, newest: BaseMessage, steps: Sequence[BaseMessage] = ()
    ) -> tuple[list[BaseMessage], list[RecallNote]]:
        """Return the request that answers a message, and the notes in it."""
        notes = await self._recall(newest)
        pinned = [self.by_number[seq] for seq in self._list_pinned(newest)]
        shown = fitting.prepare_messages(steps)
        window = self.state.window
        whole = self._compose(window, newest, notes, pinned=pinned, steps=shown)
        return fit_context(whole, self.limit, self.count_tokens).messages, notes

    async def _ask(self, newest: BaseMessage) -> None:
        if self.policy.rules == "keep" and isinstance(newest, HumanMessage):
            # A long text can take long to scan; the event loop stays free for replies.
            await asyncio.to_thread(self.rules.detect_rules, newest)

    def _prefix(self, step: Step) -> list[BaseMessage]:
        """Return nothing: no request was sent, so no provider has one in its cache."""
        return []

    def _list_pinned(self, newest: BaseMessage) -> list[int]:
        """Return the messages behind the window that were pinned by then.

        Both the user and the policy can pin messages.
        """
        now = newest.additional_kwargs["created_at"]
        by_hand = {seq for seq, at in self.pins.items() if at < now}
        found = sorted(by_hand.union(self.important))
        return [seq for seq in found if seq <= self.state.cutoff]

    async def _recall(self, newest: BaseMessage) -> list[RecallNote]:
        """Return the notes that the site would have recalled behind this window."""
        cutoff, asked = self.state.cutoff, newest.text
        if not self.policy.recall_tokens or not cutoff:
            return []
        hits = await database_sync_to_async(recall.recall_messages)(
            self.conversation,
            asked,
            limit=None,
            before_seq=cutoff + 1,
            at=newest.additional_kwargs["created_at"],
        )
        pinned = {*self._list_pinned(newest)}
        hits = [hit for hit in hits if hit.seq not in pinned]
        return self._choose_notes(asked, hits, [*self.state.window, newest])

    async def _compact(self, now: datetime | None) -> None:
        """Compact as the compaction job does, which gives up after a few failures."""
        if self.failures < MAX_FAILURES:
            await super()._compact(now)

    async def _commit(self, step: Step, made: SummaryText) -> None:
        await super()._commit(step, made)
        # Patterns written by a user can take long to match, too.
        found = await asyncio.to_thread(find_important, self.policy, step)
        self.important = sorted({*self.important, *found.seqs})[:MAX_PINNED]


class RequestPlayer(StoredPlayer):
    """Plays the messages before the newest message of the request `call`.

    Messages that are removed from the model's view are left out.
    """

    def __init__(
        self, call: ModelCall, preset: str, model: str, invoke: Invoke, chunk: int
    ) -> None:
        conversation, refs = call.conversation, call.refs
        rows = context.visible_messages(conversation)
        before = rows.filter(seq__lt=refs["newest"])
        policy = {"preset": preset}
        super().__init__(conversation, before, policy, model, invoke, chunk)
        # The message was sent, even if it was hidden or edited since.
        self.newest = conversation.messages.get(seq=refs["newest"]).to_langchain()
        steps = rows.filter(in_ranges(refs.get("steps", ())))
        self.steps = [row.to_langchain() for row in steps]

    async def make_request(self) -> list[BaseMessage]:
        """Return the messages to send. Raises the errors of the summariser."""
        for place in range(len(self.messages)):
            await self._step(place)
        messages, _notes = await self.compose_request(self.newest, self.steps)
        return messages


def count_known(messages: Sequence[BaseMessage], ratio: float) -> TokenCounter:
    """Return the calibrated counter, with the sizes of these messages counted once."""
    # They live as long as the counter does, so no other object has one of these ids.
    known = {id(message): count_message(message) for message in messages}

    def count(asked: Sequence[BaseMessage]) -> int:
        sizes = (known.get(id(each)) or count_message(each) for each in asked)
        return ceil(sum(sizes) * ratio)

    return count
