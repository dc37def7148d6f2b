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
from memory.engine.policy import Policy
from memory.engine.tokens import TokenCounter
from memory.messages import to_langchain
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
    step: plan.Compaction | plan.Merge
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
        _settle(conversation, view.policy, view.window)
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
    if not any(message.id == str(seq) for message in view.window):
        return None
    step = plan.plan_compaction_through(
        view.policy, view.window, view.blocks, seq, count_tokens=view.count_tokens
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
        self.policy = policy or conversation.get_policy()
        self.limit = limit
        if limit:
            self.policy = context.policy_within(conversation, self.policy, limit)
        self.summaries = versions.active(conversation)
        self.blocks = [versions.to_block(summary) for summary in self.summaries]
        self.count_tokens = context.counter(conversation)
        self.built = context.build(conversation)
        self.tokens = self.built.tokens
        cutoff = versions.cutoff(self.summaries)
        self.open_from = open_from(conversation)
        self.window = _closed_window(conversation, cutoff, self.open_from)

    def plan_mending(self) -> plan.Compaction | None:
        """The compaction of the changed messages before a summary that was set aside;
        with those that it stands for, where no other message is left."""
        if not self.conversation.set_aside or not self.policy.enabled:
            return None
        waiting = versions.waiting(self.conversation)
        if not waiting:
            return None
        first = waiting[0]
        return self._plan_through(first.first_seq - 1) or self._plan_through(
            first.last_seq
        )

    def _plan_through(self, end: int) -> plan.Compaction | None:
        messages = tuple(m for m in self.window if int(m.id or 0) <= end)
        is_open = self.open_from is not None and self.open_from <= end
        if not messages or is_open:
            return None
        return plan.Compaction(
            trigger=plan.TriggerHit("change", self.count_tokens(messages), 0),
            messages=messages,
            kept=tuple(self.window[len(messages) :]),
            previous=None,
            level=0,
            first_seq=versions.cutoff(self.summaries) + 1,
            last_seq=end,
        )

    def next_step(
        self, context_window: int | None, *, force: bool = False
    ) -> plan.Compaction | plan.Merge | None:
        """The step that the policy asks for now."""
        return (
            self.plan_mending()
            or plan.plan_merge(
                self.policy,
                self.blocks,
                most=budget.most_summaries(self.limit) if self.limit else None,
            )
            or plan.plan_compaction(
                self.policy,
                self.window,
                self.blocks,
                count_tokens=self.count_tokens,
                overhead=self.tokens - self.count_tokens(self.window),
                context_window=context_window,
                force=force,
                room=self.room,
                is_waiting=self.waiting is not None,
            )
        )

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
            self.policy,
            self.limit,
            self.count_tokens(around) + context.overhead(self.conversation, self.limit),
            is_waiting=self.waiting is not None,
        )

    def job(self, owner: str, step: plan.Compaction | plan.Merge) -> Job:
        return Job(
            conversation=self.conversation,
            owner=owner,
            step=step,
            sources=_sources(step, self.summaries),
            messages=_to_read(self.conversation, step),
            policy=self.policy,
            count_tokens=self.count_tokens,
            tokens_before=self.tokens,
        )


def _settle(
    conversation: Conversation, policy: Policy, window: list[BaseMessage]
) -> None:
    """Nothing is due until an idle or age trigger can fire, or the next turn ends."""
    rows = Conversation.objects.filter(pk=conversation.pk)
    lease.unmarked(rows).update(compaction_due_at=plan.find_next_due(policy, window))


def _closed_window(
    conversation: Conversation, cutoff: int, limit: int | None
) -> list[BaseMessage]:
    """The window up to the first unfinished turn."""
    rows = context.visible(conversation).filter(seq__gt=cutoff)
    if limit is not None:
        rows = rows.filter(seq__lt=limit)
    return [to_langchain(row) for row in rows]


def _to_read(
    conversation: Conversation, step: plan.Compaction | plan.Merge
) -> list[BaseMessage]:
    """The messages the new version will stand for, except what `previous` says."""
    if isinstance(step, plan.Compaction):
        return list(step.messages)
    span = (step.first_seq, step.last_seq)
    rows = context.visible(conversation).filter(seq__range=span)
    return [to_langchain(row) for row in rows]


def _sources(
    step: plan.Compaction | plan.Merge, summaries: list[Summary]
) -> list[Summary]:
    """The versions that the new one replaces."""
    if isinstance(step, plan.Merge):
        replaced = {block.version for block in step.blocks}
    else:
        replaced = {step.previous.version} if step.previous else set()
    return [summary for summary in summaries if summary.version in replaced]
