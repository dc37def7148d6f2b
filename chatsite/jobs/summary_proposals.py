"""*Summarise up to here*: a summary that is proposed to the user, as a background job.

The proposal waits on the page until it is accepted or dropped.
"""

from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from channels.db import database_sync_to_async
from django.utils.translation import gettext as _
from langchain_core.messages import AIMessage, BaseMessage
from pydantic import BaseModel

from chatsite import plugins
from chatsite.llm import providers
from chatsite.protocol.errors import CommandError, explain_code
from chatsite.turns import lifecycle, requests, runner
from chatsite.turns.models import Job
from memory import actions
from memory.compaction import proposals
from memory.compaction.compactor import InvokeError
from memory.engine.compose import digest_wire, to_wire
from memory.engine.exceptions import SummaryError
from memory.leases import Claim
from memory.models import Conversation

from . import queue, tasks

KIND = "proposal"
State = Job.State
# Jobs that ended early leave to the next one what they have paid for.
ENDED_EARLY = (State.FAILED, State.CANCELLED)


def start_proposal(
    conversation: Conversation, seq: int, typed: str, focus: str = ""
) -> Claim | None:
    """Have a summary up to message `seq` written; None: one is being written already.

    `typed` is what the user had made of the last proposal; it is shown again. `focus`
    is what the summary should keep above all.
    Raises CommandError while a summary up to another message is written.
    """
    before = find_latest_proposal(conversation)
    if before and not before.is_finished and before.values["seq"] == seq:
        return None
    try:
        return queue.add(
            KIND,
            conversation.owner,
            f"{KIND}:{conversation.pk}",
            conversation,
            values={"seq": seq, "typed": typed, "focus": focus},
            saved=before.saved if before and before.state in ENDED_EARLY else {},
        )
    except queue.JobBusyError:
        text = _("Another summary is being written here. Wait for it, or cancel it.")
        raise CommandError("busy", text) from None


def find_latest_proposal(conversation: Conversation) -> Job | None:
    """Return the only proposal of the conversation, in any state, or None."""
    return conversation.jobs.filter(kind=KIND).order_by("-pk").first()


def drop_proposal(conversation: Conversation, **_: object) -> None:
    """Delete the proposal of the conversation.

    It was accepted, its messages have changed, or one that it may quote was deleted.
    """
    conversation.jobs.filter(kind=KIND).delete()


def describe_job(job: Job, conversation: Conversation) -> dict[str, Any]:
    """Values of the dialog's template for a job in any state."""
    values: dict[str, Any] = {
        "conversation": conversation,
        "seq": job.values["seq"],
        "typed": job.values["typed"],
        "focus": job.values.get("focus", ""),
        "error": _(job.error) if job.error else "",
        "job": None if job.is_finished else job,
    }
    try:
        values["plan"] = plan_proposal_here(conversation, job.values["seq"])
    except actions.ActionError as error:
        values["error"] = values["error"] or str(error)
    if job.state == State.DONE:
        values["proposal"] = job.result
        if "plan" in values:
            after = job.result["tokens_after"]
            values["plan"] = replace(values["plan"], tokens_after=after)
    return values


def plan_proposal_here(conversation: Conversation, seq: int) -> proposals.Plan:
    return proposals.plan_proposal(conversation, seq, open_from=lifecycle.open_from)


async def _run_proposal(running: tasks.RunningJob) -> dict[str, Any]:
    conversation, model = await database_sync_to_async(_read_source)(running)
    summariser = runner.make_summariser(model, payer=running.job.user_id)
    answers = _PaidAnswers(running, summariser.rate_limit)
    try:
        made = await proposals.propose_summary(
            conversation,
            running.job.values["seq"],
            # `around` enters the rate limit, while the job can still be cancelled.
            replace(summariser, rate_limit=nullcontext),
            open_from=lifecycle.open_from,
            around=answers.around,
            focus=running.job.values.get("focus", ""),
        )
    except actions.ActionError as error:
        raise tasks.JobError(str(error)) from None
    except SummaryError as error:
        await answers.forget_last()
        raise tasks.JobError(error.render(_)) from None
    except InvokeError as error:
        raise tasks.JobError(explain_code(error.code)) from None
    return {
        "text": made.text,
        "flags": made.flags,
        "model": made.model,
        "signature": made.signature,
        "tokens_after": made.plan.tokens_after,
    }


def _read_source(running: tasks.RunningJob) -> tuple[Conversation, str]:
    conversation = Conversation.objects.get(pk=running.job.conversation_id)
    return conversation, providers.summary_model(requests.model_of(conversation))


class _PaidAnswers:
    """The answers of the model, kept so that no later attempt pays for them again."""

    def __init__(self, running: tasks.RunningJob, limit: Callable[[], Any]) -> None:
        self.running, self.limit = running, limit
        self.last = ""

    def around(self, ask: Callable[..., Awaitable[AIMessage]]) -> Any:
        async def invoke(
            messages: list[BaseMessage], *, schema: type[BaseModel] | None = None
        ) -> AIMessage:
            self.last = digest_wire(to_wire(messages, model=""))
            known = self.running.job.saved.get(self.last)
            if known:
                text, reason = known
                return AIMessage(text, response_metadata={"finish_reason": reason})
            async with self.limit(), self.running.paid_call():
                reply = await ask(messages, schema=schema)
                reason = reply.response_metadata.get("finish_reason")
                answered = {self.last: [str(reply.text), reason]}
                await self.running.save({**self.running.job.saved, **answered})
                return reply

        invoke.takes_schema = True
        return invoke

    async def forget_last(self) -> None:
        """Drop an answer that was not good enough: the next attempt asks again."""
        saved = self.running.job.saved
        await self.running.save({k: v for k, v in saved.items() if k != self.last})


plugins.register_source(KIND, tasks.JobWork(_run_proposal))
