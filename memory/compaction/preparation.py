"""What a compaction will do: the conversation's state, and one step planned on it.

Every function is one short transaction. Nothing here waits for a model.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import F
from langchain_core.messages import BaseMessage

from memory import context, versions
from memory.engine import budget, plan
from memory.engine.compaction import MemoryState
from memory.engine.policy import Policy
from memory.engine.tokens import TokenCounter
from memory.models import Conversation, Summary

from . import lease

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

# Gives the number of the first message whose turn is not finished, or None. What
# follows is not compacted: a reply may still be written between the messages there.
OpenFrom = Callable[[Conversation], int | None]


@dataclass(slots=True)
class Job:
    """One planned step with everything that its commit is checked against."""

    conversation: Conversation
    owner: str
    step: plan.Step
    sources: list[Summary]
    messages: list[BaseMessage]
    policy: Policy
    count_tokens: TokenCounter
    tokens_before: int
    author: "AbstractBaseUser | None" = None
    calls: list[int] = field(default_factory=list)
    tokens_in: int = 0
    tokens_out: int = 0
    started: float = field(default_factory=monotonic)


def prepare(
    conversation_id: int,
    owner: str,
    open_from: OpenFrom,
    context_window: int | None,
    limit: int | None,
    force: bool,
) -> Job | None:
    """Read the state and plan one step on it; None = nothing to do."""
    conversation = Conversation.objects.get(pk=conversation_id)
    if lease.is_stopped(conversation, owner):
        return None
    if conversation.set_aside:
        _resume(conversation_id, owner)
        conversation.refresh_from_db()
    limit = limit or (context.request_limit(context_window) if context_window else None)
    view = View(conversation, open_from, limit=limit)
    step = view.next_step(context_window, force=force)
    if step is None:
        _settle(conversation, view.state)
        return None
    return view.job(owner, step)


@transaction.atomic
def _resume(conversation_id: int, owner: str) -> None:
    """Let summaries that were set aside hold again, as far as nothing is missing."""
    rows = Conversation.objects.filter(pk=conversation_id, compaction_owner=owner)
    # The UPDATE is also the lock.
    if rows.update(memory_version=F("memory_version") + 1):
        versions.resume(Conversation.objects.get(pk=conversation_id))


def prepare_through(
    conversation: Conversation, owner: str, open_from: OpenFrom, seq: int
) -> Job | None:
    """The step that a person asks for: compaction to the end of the turn of message
    `seq`.

    None where the message is not in the window, or in its last turn.
    """
    view = View(conversation, open_from)
    state = view.state
    if not any(message.id == str(seq) for message in state.window):
        return None
    step = plan.plan_compaction_through(
        state.policy, state.window, state.blocks, seq, count_tokens=view.count_tokens
    )
    return view.job(owner, step) if step else None


class View:
    """What the model sees, as a step is planned on it."""

    def __init__(
        self,
        conversation: Conversation,
        open_from: OpenFrom,
        policy: Policy | None = None,
        limit: int | None = None,
    ) -> None:
        self.conversation = conversation
        policy = policy or conversation.get_policy()
        self.limit = limit
        if limit:
            policy = context.policy_within(conversation, policy, limit)
        self.summaries = versions.active(conversation)
        self.count_tokens = context.counter(conversation)
        self.built = context.build(conversation)
        self.open_from = open_from(conversation)
        cutoff = versions.cutoff(self.summaries)
        self.state = MemoryState(
            policy,
            blocks=tuple(map(versions.to_block, self.summaries)),
            window=tuple(_closed_window(conversation, cutoff, self.open_from)),
        )

    def next_step(
        self, context_window: int | None, *, force: bool = False
    ) -> plan.Step | None:
        """The step that the policy asks for now."""
        return self.state.next_step(
            set_aside=self._find_set_aside(),
            open_from=self.open_from,
            most_summaries=budget.most_summaries(self.limit) if self.limit else None,
            count_tokens=self.count_tokens,
            overhead=self.built.tokens - self.count_tokens(self.state.window),
            context_window=context_window,
            force=force,
            room=self.room,
            is_waiting=self.waiting is not None,
        )

    def _find_set_aside(self) -> tuple[int, int] | None:
        if not self.conversation.set_aside or not self.state.policy.enabled:
            return None
        waiting = versions.waiting(self.conversation)
        return (waiting[0].first_seq, waiting[0].last_seq) if waiting else None

    @property
    def waiting(self) -> BaseMessage | None:
        """The message that is the next to be answered."""
        window = self.built.context.section("window")
        seq = str(self.open_from)
        return next((message for message in window if message.id == seq), None)

    @property
    def room(self) -> int | None:
        """Tokens that the window may have, so that the next request leaves none of it
        out; None = not known."""
        if self.limit is None:
            return None
        sections = self.built.context.sections
        around = [
            m for each in sections if each.kind != "window" for m in each.messages
        ]
        around += [self.waiting] if self.waiting else []
        return budget.for_window(
            self.state.policy,
            self.limit,
            self.count_tokens(around) + context.overhead(self.conversation, self.limit),
            is_waiting=self.waiting is not None,
        )

    def job(self, owner: str, step: plan.Step) -> Job:
        replaced = {block.version for block in step.replaces}
        return Job(
            conversation=self.conversation,
            owner=owner,
            step=step,
            sources=[each for each in self.summaries if each.version in replaced],
            messages=_to_read(self.conversation, step),
            policy=self.state.policy,
            count_tokens=self.count_tokens,
            tokens_before=self.built.tokens,
        )


def _settle(conversation: Conversation, state: MemoryState) -> None:
    """Nothing is due until an idle or age trigger can fire, or the next turn ends."""
    rows = Conversation.objects.filter(pk=conversation.pk)
    due_at = plan.find_next_due(state.policy, state.window)
    lease.unmarked(rows).update(compaction_due_at=due_at)


def _closed_window(
    conversation: Conversation, cutoff: int, limit: int | None
) -> list[BaseMessage]:
    """The window up to the first unfinished turn."""
    rows = context.visible(conversation).filter(seq__gt=cutoff)
    if limit is not None:
        rows = rows.filter(seq__lt=limit)
    return [row.to_langchain() for row in rows]


def _to_read(conversation: Conversation, step: plan.Step) -> list[BaseMessage]:
    """The messages the new version will stand for, except what `previous` says."""
    if isinstance(step, plan.Compaction):
        return list(step.messages)
    span = (step.first_seq, step.last_seq)
    rows = context.visible(conversation).filter(seq__range=span)
    return [row.to_langchain() for row in rows]
