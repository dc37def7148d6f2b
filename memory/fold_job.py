"""The rows of a fold job: its lease, the plan it works on, and what it leaves behind.

Every function is one short transaction. Nothing here waits for a model.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now
from langchain_core.messages import AIMessage, BaseMessage

from . import context, versions
from .engine import plan
from .engine.compose import digest, to_wire
from .engine.exceptions import SummaryError
from .engine.patterns import find_match
from .engine.policy import Policy
from .engine.summarizer import SummaryText
from .engine.tokens import TokenCounter, count_tokens
from .messages import to_langchain
from .models import Conversation, ModelCall, Summary

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

MAX_FAILURES = 3
BACKOFF = timedelta(seconds=30)
# Renewed while the summariser works, so that a dead process blocks nobody for long.
LEASE = timedelta(seconds=20)
DUE_AT_ONCE = 50
# Messages that a policy's patterns may pin; every one of them is in every context.
MAX_PINNED = 50

# Gives the number of the first message whose turn is not finished, or None. What
# follows is not folded: a reply may still be written between the messages there.
OpenFrom = Callable[[Conversation], int | None]


class InvokeError(Exception):
    """The summariser's model did not answer; `code` is a short reason to store."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(slots=True)
class Job:
    """One planned step with everything that its commit is checked against."""

    conversation: Conversation
    owner: str
    step: plan.Fold | plan.Merge
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


def claim(conversation_id: int, owner: str, force: bool) -> bool:
    """Whether this owner may fold now. `force`: rest and failures do not matter."""
    rows = _free().filter(pk=conversation_id)
    if not force:
        rows = rows.filter(_rested())
    end = Now() + LEASE
    # Should this process die, the next look is due when its lease has ended.
    return bool(rows.update(fold_owner=owner, fold_lease_until=end, fold_due_at=end))


def _free() -> QuerySet[Conversation]:
    free = Q(fold_lease_until=None) | Q(fold_lease_until__lt=Now())
    return Conversation.objects.filter(free)


def _rested() -> Q:
    rested = Q(fold_retry_at=None) | Q(fold_retry_at__lt=Now())
    return rested & Q(fold_failures__lt=MAX_FAILURES)


def due() -> list[int]:
    """Conversations that a fold job should look at and that nobody folds."""
    rows = _free().filter(_rested(), fold_due_at__lte=Now()).order_by("fold_due_at")
    return list(rows.values_list("pk", flat=True)[:DUE_AT_ONCE])


def mark_due(conversation_id: int) -> None:
    Conversation.objects.filter(pk=conversation_id).update(fold_due_at=Now())


def _unmarked(rows: QuerySet[Conversation]) -> QuerySet[Conversation]:
    """Those where no turn has ended since the job began: its mark is never ahead."""
    return rows.filter(fold_due_at__gt=Now())


def renew(conversation_id: int, owner: str) -> None:
    rows = Conversation.objects.filter(pk=conversation_id, fold_owner=owner)
    rows.update(fold_lease_until=Now() + LEASE)
    _unmarked(rows).update(fold_due_at=Now() + LEASE)


def release(conversation_id: int, owner: str) -> None:
    rows = Conversation.objects.filter(pk=conversation_id, fold_owner=owner)
    rows.update(fold_owner="", fold_lease_until=None)


def prepare(
    conversation_id: int,
    owner: str,
    open_from: OpenFrom,
    context_window: int | None,
    force: bool,
) -> Job | None:
    """Read the state and plan one step on it; None = nothing to do."""
    conversation = Conversation.objects.get(pk=conversation_id)
    view = _View(conversation, open_from)
    step = plan.plan_merge(view.policy, view.blocks) or plan.plan_fold(
        view.policy,
        view.window,
        view.blocks,
        count_tokens=view.count_tokens,
        overhead=view.tokens - view.count_tokens(view.window),
        context_window=context_window,
        force=force,
    )
    if step is None:
        _settle(conversation, view.policy, view.window)
        return None
    return view.job(owner, step)


def prepare_through(
    conversation: Conversation, owner: str, open_from: OpenFrom, seq: int
) -> Job | None:
    """The step that a person asks for: fold to the end of the turn of message `seq`.

    None where the message is not in the window, or in its last turn.
    """
    view = _View(conversation, open_from)
    if not any(message.id == str(seq) for message in view.window):
        return None
    step = plan.plan_fold_through(
        view.policy, view.window, view.blocks, seq, count_tokens=view.count_tokens
    )
    return view.job(owner, step) if step else None


class _View:
    """What the model sees, as a step is planned on it."""

    def __init__(self, conversation: Conversation, open_from: OpenFrom) -> None:
        self.conversation = conversation
        self.policy = conversation.get_policy()
        self.summaries = versions.active(conversation)
        self.blocks = [versions.to_block(summary) for summary in self.summaries]
        self.count_tokens = context.counter(conversation)
        self.tokens = context.build(conversation).tokens
        cutoff = versions.cutoff(self.summaries)
        self.window = _closed_window(conversation, cutoff, open_from)

    def job(self, owner: str, step: plan.Fold | plan.Merge) -> Job:
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
    _unmarked(rows).update(fold_due_at=plan.find_next_due(policy, window))


def _closed_window(
    conversation: Conversation, cutoff: int, open_from: OpenFrom
) -> list[BaseMessage]:
    """The window up to the first unfinished turn."""
    rows = context.visible(conversation).filter(seq__gt=cutoff)
    limit = open_from(conversation)
    if limit is not None:
        rows = rows.filter(seq__lt=limit)
    return [to_langchain(row) for row in rows]


def _to_read(
    conversation: Conversation, step: plan.Fold | plan.Merge
) -> list[BaseMessage]:
    """The messages the new version will stand for, except what `previous` says."""
    if isinstance(step, plan.Fold):
        return list(step.messages)
    span = (step.first_seq, step.last_seq)
    rows = context.visible(conversation).filter(seq__range=span)
    return [to_langchain(row) for row in rows]


def _sources(step: plan.Fold | plan.Merge, summaries: list[Summary]) -> list[Summary]:
    """The versions that the new one replaces."""
    if isinstance(step, plan.Merge):
        replaced = {block.version for block in step.blocks}
    else:
        replaced = {step.previous.version} if step.previous else set()
    return [summary for summary in summaries if summary.version in replaced]


def record_call(
    job: Job,
    model: str,
    messages: list[BaseMessage],
    reply: AIMessage | None,
    error: str,
    ms: int,
) -> None:
    usage = (reply.usage_metadata if reply else None) or {}
    cached = usage.get("input_token_details", {}).get("cache_read")
    call = ModelCall.objects.create(
        conversation=job.conversation,
        purpose=ModelCall.Purpose.SUMMARY,
        refs={
            "messages": [job.step.first_seq, job.step.last_seq],
            "summaries": [summary.version for summary in job.sources],
        },
        sha256=digest(to_wire(messages, model=model)),
        model=model,
        tokens_estimated=job.count_tokens(messages),
        tokens_input=usage.get("input_tokens"),
        tokens_cached=cached,
        tokens_output=usage.get("output_tokens"),
        total_ms=ms,
        attempts=reply.response_metadata.get("attempts", 1) if reply else 1,
        error=error,
    )
    job.calls.append(call.pk)
    job.tokens_in += call.tokens_input or call.tokens_estimated
    if reply:
        job.tokens_out += call.tokens_output or count_tokens([reply])


@transaction.atomic
def commit(job: Job, model: str, result: SummaryText) -> int | None:
    """Write the new version if nothing has changed since the plan; else None."""
    unchanged = Conversation.objects.filter(
        pk=job.conversation.pk,
        memory_version=job.conversation.memory_version,
        fold_owner=job.owner,
    )
    if not unchanged.update(
        memory_version=F("memory_version") + 1, fold_failures=0, fold_retry_at=None
    ):
        return None
    summary = versions.append(
        job.conversation,
        replaces=job.sources,
        text=result.text,
        generation=_generation(job, result),
        structured=result.structured,
        flags=result.flags,
        prompt_hash=result.prompt_hash,
        status=Summary.Status.ACTIVE,
        tokens_after=tokens_after(job, result.text),
        author=job.author,
        **_common(job, model),
    )
    ModelCall.objects.filter(pk__in=job.calls).update(summary=summary)
    _pin_important(job)
    return summary.version


def _generation(job: Job, result: SummaryText) -> int:
    if not result.rewritten:
        return 1
    return 1 + max((source.generation for source in job.sources), default=0)


def _pin_important(job: Job) -> None:
    """Keep what the policy calls important word for word, up to a number."""
    important = job.policy.important
    if not important or isinstance(job.step, plan.Merge):
        return
    found = [
        int(message.id)
        for message in job.messages
        if find_match(important, str(message.text))
    ]
    rows = job.conversation.messages
    room = max(0, MAX_PINNED - rows.filter(pinned_at__isnull=False).count())
    pinned = rows.filter(seq__in=found[:room], pinned_at=None)
    pinned.update(pinned_at=Now())


def tokens_after(job: Job, text: str) -> int:
    """The context's size once `text` stands for what it replaces."""
    gone = [versions.to_block(source).text for source in job.sources]
    if isinstance(job.step, plan.Fold):
        gone += [str(message.content) for message in job.messages]
    as_messages = [AIMessage(part) for part in gone]
    after = job.tokens_before - job.count_tokens(as_messages)
    return max(0, after + job.count_tokens([AIMessage(text)]))


@transaction.atomic
def record_failure(job: Job, model: str, error: SummaryError | InvokeError) -> None:
    rows = Conversation.objects.filter(pk=job.conversation.pk, fold_owner=job.owner)
    retry_at = Now() + BACKOFF * 2**job.conversation.fold_failures
    if not rows.update(
        fold_failures=F("fold_failures") + 1,
        fold_retry_at=retry_at,
        fold_due_at=retry_at,
    ):
        return  # the lease was lost: whoever has it keeps the books
    rejected = isinstance(error, SummaryError)
    summary = versions.append(
        job.conversation,
        status=Summary.Status.REJECTED if rejected else Summary.Status.FAILED,
        error=error_name(error),
        tokens_after=job.tokens_before,
        **_common(job, model),
    )
    ModelCall.objects.filter(pk__in=job.calls).update(summary=summary)


def _common(job: Job, model: str) -> dict[str, object]:
    trigger = job.step.trigger
    return {
        "level": job.step.level,
        "first_seq": job.step.first_seq,
        "last_seq": job.step.last_seq,
        "trigger": {
            "kind": trigger.kind,
            "value": trigger.value,
            "limit": trigger.limit,
        },
        "policy_hash": job.policy.digest(),
        "model": model,
        "tokens_in": job.tokens_in,
        "tokens_out": job.tokens_out,
        "tokens_before": job.tokens_before,
        "ms": int((monotonic() - job.started) * 1000),
    }


def error_name(error: SummaryError | InvokeError) -> str:
    return error.code if isinstance(error, InvokeError) else type(error).__name__
