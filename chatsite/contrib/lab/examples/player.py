"""The request of an example as another policy would have made it: the conversation up
to there is played through the policy, with the site's summariser. Nothing is written.
"""

from typing import Any

from channels.db import database_sync_to_async
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from chatsite.llm import providers
from chatsite.turns import requests
from memory import context
from memory.engine.compose import compose_context, fit_context, make_fence
from memory.engine.policy import Policy
from memory.engine.search import excerpts
from memory.engine.summaries.summarizer import Invoke
from memory.engine.tools import fitting
from memory.evaluation.replay import Player, Recording
from memory.models import ModelCall
from memory.ranges import in_ranges
from memory.search import recall

# What its summaries may take, in requests to the summariser.
MOST_REQUESTS = 40


class TooManySummariesError(Exception):
    """More summaries are needed than one answer may cost."""


class RequestPlayer(Player):
    """Reads what it plays from the database when it is made: the messages before the
    newest of the request `call` that are not removed from the model's view."""

    def __init__(
        self, call: ModelCall, preset: str, model: str, invoke: Invoke
    ) -> None:
        conversation, refs = call.conversation, call.refs
        super().__init__(
            Recording(id="", messages=[]),
            Policy.load({"preset": preset}),
            _Counted(invoke),
            context.find_system_prompt(conversation),
            providers.context_window(model),
        )
        rows = context.visible_messages(conversation)
        before = list(rows.filter(seq__lt=refs["newest"]))
        self.messages = [row.to_langchain() for row in before]
        self.pinned = [row.to_langchain() for row in before if row.pinned_at]
        # It was asked, also where it was hidden or edited since.
        newest = conversation.messages.get(seq=refs["newest"])
        self.newest = newest.to_langchain()
        steps = rows.filter(in_ranges(refs.get("steps", ())))
        self.steps = [row.to_langchain() for row in steps]
        self.conversation, self.limit = conversation, requests.limit_of(model)
        self.count_tokens = context.conversation_counter(conversation)

    async def make_request(self) -> list[BaseMessage]:
        """The messages to send. Raises InvokeError and TooManySummariesError."""
        for place in range(len(self.messages)):
            await self._step(place)
        notes = await database_sync_to_async(self._recall)()
        whole = compose_context(
            system_prompt=self.system_prompt,
            blocks=self.state.blocks,
            pinned=[
                each for each in self.pinned if int(each.id or 0) <= self.state.cutoff
            ],
            rules=self.rules.blocks,
            window=fitting.prepare_messages(self.state.window),
            recalled=[note.message for note in notes],
            newest=self.newest,
            steps=fitting.prepare_messages(self.steps),
            fence=make_fence(self.policy.final_prompt),
        )
        return fit_context(whole, self.limit, self.count_tokens).messages

    async def _ask(self, newest: BaseMessage) -> None:
        if self.policy.rules == "keep" and isinstance(newest, HumanMessage):
            self.rules.hear(newest)

    def _recall(self) -> list[excerpts.Note]:
        """As the site would have: what matches behind this window."""
        cutoff, question = self.state.cutoff, self.newest.text
        if not self.policy.recall_tokens or not cutoff:
            return []
        hits = recall.recall_messages(
            self.conversation,
            question,
            limit=excerpts.find_breadth(question).hits,
            before_seq=cutoff + 1,
            at=self.newest.additional_kwargs["created_at"],
        )
        known = {int(each.id or 0): each for each in self.messages}
        pinned = {int(each.id or 0) for each in self.pinned}
        return excerpts.choose_excerpts(
            hits,
            {
                hit.seq: known[hit.seq]
                for hit in hits
                if hit.seq in known and hit.seq not in pinned
            },
            question,
            room=self.policy.recall_tokens,
            count_tokens=self.count_tokens,
            later=[*self.state.window, self.newest],
        )


class _Counted:
    """The summariser, as often as one answer may ask it."""

    takes_schema = True

    def __init__(self, invoke: Invoke) -> None:
        self.invoke, self.asked = invoke, 0

    async def __call__(self, messages: list[BaseMessage], **options: Any) -> AIMessage:
        if self.asked >= MOST_REQUESTS:
            raise TooManySummariesError
        self.asked += 1
        return await self.invoke(messages, **options)
