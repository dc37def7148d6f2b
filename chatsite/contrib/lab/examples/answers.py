"""Answers of other models or policies to the requests of examples.

A background job of the user who starts it writes one answer after the other.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from channels.db import database_sync_to_async
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.utils.translation import gettext as _
from langchain_core.messages import AIMessage, BaseMessage

from chatsite import plugins
from chatsite.jobs import queue, tasks
from chatsite.llm import providers
from chatsite.llm.errors import LLMError
from chatsite.protocol.errors import explain_code
from chatsite.turns import limits, model_access, requests, runner, spending
from chatsite.turns.models import Job
from memory.compaction.compactor import InvokeError, RefusedError
from memory.engine.policy import PRESETS
from memory.leases import Claim, LostError
from memory.models import Conversation, ModelCall
from memory.transcript import ActionError

from ..billing import Ask, send_paid
from ..player import RequestPlayer
from ..stored_requests import UNREADABLE
from .models import Example, ExampleAnswer
from .proofs import prove_examples, read_examples

KIND = "examples"
# Maximum of examples in one job, and of answers kept for one example.
MOST_AT_ONCE, MOST_KEPT = 20, 12
# Maximum of requests to the summariser for one answer.
MOST_SUMMARIES = 40
CANNOT_REBUILD, TOO_MANY_SUMMARIES = "cannot_rebuild", "too_many_summaries"


class TooManySummariesError(Exception):
    """More summaries are needed than one answer may cost."""


def start_answers(
    user: AbstractBaseUser, examples: Sequence[Example], model: str, preset: str
) -> Claim:
    """Queue answers of a model to these examples, at most MOST_AT_ONCE of them.

    With a `preset`, the requests are made as that policy would make them, else as
    they were sent. Raises ActionError, and CommandError if the tokens of the day
    are used up.
    """
    is_offered = model in model_access.list_models_for(user.pk)
    if not is_offered or preset not in ("", *PRESETS):
        raise ActionError(_("Choose one of the models and policies."))
    if not examples:
        raise ActionError(_("There is no example to answer."))
    limits.admit_spending(user.pk)
    keys = [each.pk for each in examples[:MOST_AT_ONCE]]
    values = {"examples": keys, "model": model, "preset": preset}
    try:
        return queue.add(KIND, user, f"{KIND}:{user.pk}", values=values)
    except queue.JobBusyError:
        busy = _("Other answers of yours are being written. Wait for them, or cancel.")
        raise ActionError(busy) from None


def find_job(user: AbstractBaseUser) -> Job | None:
    """Return the user's latest job, which the pages show; None if it was cancelled."""
    job = queue.latest(KIND, user)
    return None if job and job.state == Job.State.CANCELLED else job


async def _write_answers(running: tasks.RunningJob) -> dict[str, Any]:
    keys = running.job.values["examples"]
    for done, key in enumerate(keys):
        kept = database_sync_to_async(queue.renew)
        if not await kept(running.claim, done=done, total=len(keys)):
            raise LostError
        asking = _AnswerRequest(running, key)
        answer = await asking.find_answer()
        if answer is not None:
            await database_sync_to_async(_keep_answer)(answer, asking.deleted)
    return {"answers": len(keys)}


class _AnswerRequest:
    """One example, and the use of its answer.

    The player calls it as its summariser, so the requests for summaries count, too.
    """

    takes_schema = True

    def __init__(self, running: tasks.RunningJob, key: int) -> None:
        self.running, self.key, self.deleted = running, key, 0
        values, self.payer = running.job.values, running.job.user_id
        self.model, self.preset = values["model"], values["preset"]
        # Its counts grow with each request.
        self.answer = ExampleAnswer(
            user_id=self.payer, model=self.model, preset=self.preset
        )
        name = providers.summary_model(self.model)
        self.summariser = runner.make_summariser(name, payer=self.payer)

    async def find_answer(self) -> ExampleAnswer | None:
        """Return the answer; None if the example is gone.

        Raises JobError if no more may be spent.
        """
        found = await database_sync_to_async(self._prove)()
        if found is None:
            return None
        answer, (example, call, sent) = self.answer, found
        answer.example_id, answer.conversation_id = example.pk, example.conversation_id
        try:
            answer.text = await self._answer(call, sent) if sent else ""
            answer.error = "" if sent else CANNOT_REBUILD
        except RefusedError as refused:
            raise tasks.JobError(explain_code(refused.code)) from None
        except (InvokeError, LLMError) as failure:
            answer.error = failure.code
        except TooManySummariesError:
            answer.error = TOO_MANY_SUMMARIES
        except UNREADABLE:
            answer.error = CANNOT_REBUILD
        return answer

    def _prove(self) -> tuple[Example, ModelCall | None, list[BaseMessage]] | None:
        rows = read_examples([self.key])
        if not rows:
            return None
        self.deleted = _count_deleted(rows[0])
        [proof] = prove_examples(rows)
        return proof.example, proof.call, proof.built.messages if proof.built else []

    async def _answer(self, call: ModelCall, sent: list[BaseMessage]) -> str:
        if self.preset:
            asked = (call, self.preset, self.model, self, self.summariser.chunk_tokens)
            player = await database_sync_to_async(RequestPlayer)(*asked)
            sent = await player.make_request()
        temperature = requests.temperature_of(call.conversation)
        ask = partial(requests.complete_request, self.model, temperature=temperature)
        reply = await self._pay_for(self.model, ask, sent)
        return str(reply.text)

    async def __call__(self, messages: list[BaseMessage], **options: Any) -> AIMessage:
        if self.answer.requests >= MOST_SUMMARIES:
            raise TooManySummariesError
        summariser = self.summariser
        ask = partial(summariser.invoke, **options)
        return await self._pay_for(summariser.model, ask, messages)

    async def _pay_for(
        self, model: str, ask: Ask, messages: list[BaseMessage]
    ) -> AIMessage:
        """Send one request, charged to the user who wants the answer."""
        async with spending.hold_place(self.payer, model), self.running.paid_call():
            self.answer.requests += 1
            reply, used = await send_paid(self.payer, model, ask, messages)
            self.answer.tokens_in += used.read
            self.answer.tokens_out += used.written
        return reply


def _count_deleted(example: Example) -> int:
    rows = example.conversation.messages.filter(seq__lte=example.message.seq)
    return rows.exclude(deleted_at=None).count()


@transaction.atomic
def _keep_answer(answer: ExampleAnswer, deleted: int) -> None:
    """Store the answer, and delete the oldest ones beyond MOST_KEPT.

    Nothing is stored if the example is gone, and no text if a message of its
    conversation was deleted meanwhile, as the answer can quote it.
    """
    # With this lock, a deletion either waits or is complete.
    locked = Conversation.objects.select_for_update().filter(pk=answer.conversation_id)
    if not locked.exists() or not (found := read_examples([answer.example_id])):
        return
    if _count_deleted(found[0]) != deleted:
        answer.text, answer.error = "", CANNOT_REBUILD
    answer.save()
    rows = ExampleAnswer.objects.filter(example=answer.example_id)
    old = rows.order_by("-id").values_list("pk", flat=True)[MOST_KEPT:]
    ExampleAnswer.objects.filter(pk__in=[*old]).delete()


plugins.register_source(KIND, tasks.JobWork(_write_answers))
