"""Compaction by hand: a user accepts, edits or drops a proposed summary.

Nothing changes before it is accepted; its sources must be unchanged then.
"""

from dataclasses import dataclass
from typing import Any

from channels.db import database_sync_to_async
from django.contrib.auth.base_user import AbstractBaseUser
from django.core import signing
from django.db import transaction
from django.utils.translation import gettext as _
from langchain_core.messages import BaseMessage

from memory import context, transcript, versions
from memory.engine.compaction import find_important
from memory.engine.plan import Compaction
from memory.engine.policy import Policy, parse_focus
from memory.engine.summaries.dropped import check_written
from memory.engine.summaries.summarizer import SummaryText
from memory.models import Conversation, Summary
from memory.prompts import hash_text
from memory.transcript import ActionError

from . import commit, compactor, lease, preparation
from .preparation import CompactionJob, OpenFrom

SALT = "memory.proposal"
MAX_AGE = 24 * 3600


@dataclass(frozen=True, slots=True)
class Plan:
    """A compaction before a model was asked. Tokens are estimated."""

    first_seq: int
    last_seq: int
    # The messages that leave the window.
    messages: tuple[BaseMessage, ...]
    tokens_before: int
    # Counted with a summary of the policy's greatest length.
    tokens_after: int
    replaces: tuple[int, ...]
    # True if the messages leave the window without a summary.
    is_trim: bool = False


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed summary.

    `signature` proves what it was made of; accept_proposal() requires it. `flags`:
    what is to be checked in its text, as for a stored summary.
    """

    plan: Plan
    text: str
    flags: dict[str, Any]
    model: str
    signature: str


def plan_proposal(conversation: Conversation, seq: int, *, open_from: OpenFrom) -> Plan:
    """Return what compaction up to message `seq` would do.

    Raises ActionError if that is impossible.
    """
    return _plan_of(_prepare_proposal(conversation, seq, open_from))


@dataclass(frozen=True, slots=True)
class Estimate:
    """The effect of a policy now: the window's size, and the step, if one is due."""

    messages: int
    tokens: int
    step: Plan | None


def estimate_compaction(
    conversation: Conversation,
    policy: Policy,
    *,
    open_from: OpenFrom,
    context_window: int | None,
) -> Estimate:
    limit = context.request_limit(context_window) if context_window else None
    planner = preparation.Planner(conversation, open_from, policy, limit)
    step = planner.next_step(context_window)
    return Estimate(
        messages=len(planner.state.window),
        tokens=planner.count_tokens(planner.state.window),
        step=_plan_of(planner.make_job(step)) if step else None,
    )


async def propose_summary(
    conversation: Conversation,
    seq: int,
    summariser: compactor.Summariser,
    *,
    open_from: OpenFrom,
    around: compactor.Around | None = None,
    focus: str = "",
) -> Proposal:
    """Have a summary written; only its requests are recorded and billed.

    `focus`: what it should keep above all; empty: as the policy says.

    Raises ActionError, and SummaryError or InvokeError when the summariser failed.
    """
    job = await database_sync_to_async(_prepare_proposal)(conversation, seq, open_from)
    if focus:
        job.policy = job.policy.model_copy(update={"focus": parse_focus(focus)})
    made = await compactor.write_step_summary(job, summariser, around)
    made_of = {
        "conversation": conversation.pk,
        "memory_version": job.conversation.memory_version,
        "seq": seq,
        "text_sha256": hash_text(made.text),
        "prompt_hash": made.prompt_hash,
        "model": summariser.model,
        "calls": job.calls,
        "tokens_in": job.tokens_in,
        "tokens_out": job.tokens_out,
    }
    return Proposal(
        plan=await database_sync_to_async(_plan_of)(job, made.text),
        text=made.text,
        flags=made.flags,
        model=summariser.model,
        signature=signing.dumps(made_of, salt=SALT, compress=True),
    )


def accept_proposal(
    conversation: Conversation,
    signature: str,
    text: object,
    *,
    author: AbstractBaseUser,
    open_from: OpenFrom,
) -> Summary:
    """Put a proposed summary in force, as it was written or in other words.

    Raises ActionError when the model's view has changed since, TextError when the text
    can't be stored.
    """
    text = transcript.check_message_text(text)
    known = _open_preview(conversation, signature)
    # Reading all messages takes a while, so it is done before anything is locked. The
    # memory version below shows whether they have changed.
    seen = _prepare_proposal(conversation, known["seq"], open_from)
    sources = [versions.to_block(source).text for source in seen.sources]
    flags = check_written(text, sources, seen.messages)
    important = find_important(seen.policy, seen.step)
    with transaction.atomic():
        transcript.lock_for_update(conversation)
        claim = lease.claim_compaction(conversation.pk, force=True)
        if claim is None:
            raise ActionError(
                _("Messages are being summarised right now. Try again soon.")
            )
        job = _prepare_proposal(conversation, known["seq"], open_from)
        if job.conversation.memory_version != known["memory_version"]:
            raise ActionError(
                _("What the model sees has changed since. Look at it again.")
            )
        as_proposed = hash_text(text) == known["text_sha256"]
        job.author, job.calls = author, known["calls"]
        job.tokens_in, job.tokens_out = known["tokens_in"], known["tokens_out"]
        summary = SummaryText(
            text=text,
            prompt_hash=known["prompt_hash"] if as_proposed else "",
            requests=len(job.calls),
            rewritten=bool(job.sources),
            flags=flags,
        )
        model = known["model"] if as_proposed else ""
        version = commit.commit_summary(claim, job, model, summary, important)
        lease.release_compaction(claim)
    return conversation.summaries.get(version=version)


def is_changed(conversation: Conversation, signature: str, text: str) -> bool:
    """Return whether the user has changed the text of a proposal."""
    try:
        return hash_text(text) != _open_preview(conversation, signature)["text_sha256"]
    except ActionError:
        return True


def _prepare_proposal(
    conversation: Conversation, seq: int, open_from: OpenFrom
) -> CompactionJob:
    fresh = Conversation.objects.get(pk=conversation.pk)
    job = preparation.prepare_through(fresh, open_from, seq)
    if job is None:
        raise ActionError(
            _(
                "Message #%(seq)s can't be summarised: it is not in the window, or "
                "nothing would be left there."
            )
            % {"seq": seq}
        )
    return job


def _plan_of(job: CompactionJob, text: str | None = None) -> Plan:
    """Return the plan of a job.

    Without a text, it counts a summary of the policy's greatest length.
    """
    is_trim = isinstance(job.step, Compaction) and job.step.is_trim
    if text is None:
        text = "" if is_trim else "x" * 4 * job.policy.max_summary_tokens
    return Plan(
        first_seq=job.step.first_seq,
        last_seq=job.step.last_seq,
        messages=tuple(job.messages),
        tokens_before=job.tokens_before,
        tokens_after=commit.tokens_after(job, text),
        replaces=tuple(source.version for source in job.sources),
        is_trim=is_trim,
    )


def _open_preview(conversation: Conversation, signature: str) -> dict[str, Any]:
    try:
        known = signing.loads(signature, salt=SALT, max_age=MAX_AGE)
    except signing.BadSignature:
        raise ActionError(_("This preview is out of date. Look at it again.")) from None
    if known["conversation"] != conversation.pk:
        raise ActionError(_("This preview belongs to another conversation."))
    return known
