"""Results of a compaction: its requests, the new version, or the failure.

Every function is one transaction. A version is written only if nothing that the model
sees has changed since the step was planned.
"""

import logging
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from time import monotonic

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from langchain_core.messages import AIMessage, BaseMessage

from memory import context, prompts, versions
from memory.engine.compaction import Important
from memory.engine.compose import (
    USUAL_SHAPE,
    Shape,
    SummaryBlock,
    compose_context,
    digest_wire,
    to_wire,
)
from memory.engine.exceptions import SummaryError
from memory.engine.plan import Compaction
from memory.engine.summaries.summarizer import SummaryText
from memory.engine.tokens import count_tokens
from memory.leases import Claim
from memory.models import Conversation, ModelCall, Summary, read_langchain
from memory.ranges import to_ranges
from memory.view import rebuilding

from . import lease
from .preparation import CompactionJob

logger = logging.getLogger(__name__)

# The error of a compaction that failed, but not at the summariser.
CRASHED = "internal"
# The most messages that a policy's patterns may pin; each is in every context.
MAX_PINNED = 50

# Called for each request in the transaction that records it, with the reply's text.
Charge = Callable[[ModelCall, str], None]


class InvokeError(Exception):
    """The summariser's model did not answer.

    `code` is a short reason to store, `shape` the shape in which the messages were
    sent.
    """

    def __init__(self, code: str, shape: Shape = USUAL_SHAPE) -> None:
        super().__init__(code)
        self.code = code
        self.shape = shape


class RefusedError(InvokeError):
    """The user's limit is reached for `retry_after` seconds; no request was sent.

    That is no failure of the summariser, so it is not counted.
    """

    def __init__(self, code: str, retry_after: float) -> None:
        super().__init__(code)
        self.retry_after = retry_after


@transaction.atomic
def record_call(
    job: CompactionJob,
    model: str,
    messages: list[BaseMessage],
    reply: AIMessage | None,
    error: InvokeError | None,
    ms: int,
    charge: Charge,
) -> None:
    sent = reply.response_metadata.get("shape") if reply else error and error.shape
    shape = sent or USUAL_SHAPE
    refs = {
        "messages": [job.step.first_seq, job.step.last_seq],
        "summaries": [summary.version for summary in job.sources],
        **shape.to_refs(),
    }
    if job.prefix and messages[:-1] == job.prefix.messages:
        # The request can be rebuilt from these references.
        instruction, _, asked = messages[-1].text.rpartition("\n")
        name = prompts.hash_text(instruction)
        refs |= {**job.prefix.refs, "instruction": name, "asked": asked}
        prompts.keep_texts(job.conversation, {**job.prefix.texts, name: instruction})
    usage = (reply.usage_metadata if reply else None) or {}
    cached = usage.get("input_token_details", {}).get("cache_read")
    call = ModelCall.objects.create(
        conversation=job.conversation,
        purpose=ModelCall.Purpose.SUMMARY,
        refs=refs,
        sha256=digest_wire(to_wire(shape.apply_to(messages), model=model)),
        model=model,
        tokens_estimated=job.count_tokens(messages),
        # LangChain has no word for "unknown": 0 is none.
        tokens_input=usage.get("input_tokens") or None,
        tokens_cached=cached,
        tokens_output=usage.get("output_tokens") or None,
        total_ms=ms,
        attempts=reply.response_metadata.get("attempts", 1) if reply else 1,
        error=error.code if error else "",
    )
    job.calls.append(call.pk)
    job.tokens_in += call.tokens_input or call.tokens_estimated
    if reply:
        job.tokens_out += call.tokens_output or count_tokens([reply])
    charge(call, str(reply.text) if reply else "")


@transaction.atomic
def commit_summary(
    claim: Claim,
    job: CompactionJob,
    model: str,
    result: SummaryText,
    important: Important,
) -> int | None:
    """Write the new version if nothing has changed since the plan; else return None.

    A second call, after an answer that got lost, finds what the first one wrote.
    """
    unchanged = Conversation.objects.filter(
        pk=job.conversation.pk,
        memory_version=job.conversation.memory_version,
        compaction_owner=claim.owner,
    )
    if not unchanged.update(
        memory_version=F("memory_version") + 1,
        compaction_failures=0,
        compaction_retry_at=None,
    ):
        made = Summary.objects.filter(model_calls__in=job.calls)
        return made.values_list("version", flat=True).first()
    generation, flags = 1, dict(result.flags)
    if result.rewritten:
        generation += max((source.generation for source in job.sources), default=0)
        flags |= versions.date_words(job.sources)
    if important.unread:
        spans = to_ranges(important.unread)
        texts = [f"#{a}" if a == b else f"#{a}-{b}" for a, b in spans]
        flags["unmatched"] = texts
    summary = versions.append_version(
        job.conversation,
        replaces=job.sources,
        text=result.text,
        generation=generation,
        structured=result.structured,
        flags=flags,
        prompt_hash=result.prompt_hash,
        status=Summary.Status.ACTIVE,
        tokens_after=tokens_after(job, result.text),
        author=job.author,
        # Messages that only leave the window were read by no model.
        **_shared_columns(job, model if result.text else ""),
    )
    ModelCall.objects.filter(pk__in=job.calls).update(summary=summary)
    if important.seqs:
        rows = job.conversation.messages
        room = max(0, MAX_PINNED - rows.filter(pinned_at__isnull=False).count())
        pinned = rows.filter(seq__in=important.seqs[:room], pinned_at=None)
        pinned.update(pinned_at=Now())
    if job.conversation.rule_count:
        check = partial(_check_rules, job.conversation.pk)
        transaction.on_commit(check, robust=True)
    return summary.version


def _check_rules(conversation_id: int) -> None:
    """Log an error if a confirmed rule is missing from the next request.

    No compaction can remove a rule, so this reports a bug at once.
    """
    conversation = Conversation.objects.filter(pk=conversation_id).first()
    if conversation and (missing := rebuilding.missing_rules(conversation)):
        logger.error(
            "rules lost by a compaction conversation=%s messages=%s",
            conversation_id,
            missing,
        )


def tokens_after(job: CompactionJob, text: str) -> int:
    """Return the context's tokens once `text` replaces what it summarises.

    Pinned messages among them are quoted then.
    """
    step, active = job.step, versions.active_summaries(job.conversation)
    cutoff = versions.last_covered(active)
    fence = context.get_fence(job.conversation)
    rows = context.visible_messages(job.conversation).filter(pinned_at__isnull=False)
    pinned = read_langchain(rows.filter(seq__lte=max(cutoff, step.last_seq)))
    replaced = {source.version for source in job.sources}
    blocks = [versions.to_block(row) for row in active]
    made = SummaryBlock(0, step.level, step.first_seq, step.last_seq, text, 0)
    kept = [block for block in blocks if block.version not in replaced]

    def count(blocks: list[SummaryBlock], cutoff: int, *window: BaseMessage) -> int:
        quoted = [message for message in pinned if int(message.id or 0) <= cutoff]
        parts = compose_context(
            system_prompt="", blocks=blocks, pinned=quoted, window=window, fence=fence
        )
        return job.count_tokens(parts.messages)

    gone = job.messages if isinstance(step, Compaction) else []
    after = count(
        sorted([*kept, made], key=lambda each: each.first_seq),
        max(cutoff, step.last_seq),
    )
    return max(0, job.tokens_before - count(blocks, cutoff, *gone) + after)


@transaction.atomic
def record_failure(
    claim: Claim, model: str, error: Exception, job: CompactionJob | None
) -> None:
    """Count the failure, whatever was raised.

    Without a `job` no step was planned, so there is no range for a version that records
    it.
    """
    if not lease.count_failure(claim) or job is None:
        return
    rejected = isinstance(error, SummaryError)
    summary = versions.append_version(
        job.conversation,
        status=Summary.Status.REJECTED if rejected else Summary.Status.FAILED,
        error=error_name(error),
        tokens_after=job.tokens_before,
        **_shared_columns(job, model),
    )
    ModelCall.objects.filter(pk__in=job.calls).update(summary=summary)


def _shared_columns(job: CompactionJob, model: str) -> dict[str, object]:
    return {
        "level": job.step.level,
        "first_seq": job.step.first_seq,
        "last_seq": job.step.last_seq,
        "trigger": asdict(job.step.trigger),
        "preset": job.policy.preset,
        "policy_hash": job.policy.digest(),
        "model": model,
        "tokens_in": job.tokens_in,
        "tokens_out": job.tokens_out,
        "tokens_before": job.tokens_before,
        "ms": int((monotonic() - job.started) * 1000),
    }


def error_name(error: Exception) -> str:
    """Return the name to store of an error.

    Its text is never stored, because it can quote messages.
    """
    if isinstance(error, InvokeError):
        return error.code
    return type(error).__name__ if isinstance(error, SummaryError) else CRASHED
