"""The writing of trials in detached tasks of a server process.

Any process takes the next one, as runner.py does with turns.
"""

import asyncio
import logging
from dataclasses import dataclass, replace

from channels.db import database_sync_to_async

from chatsite import metrics
from chatsite.fair_queue import work_owner
from chatsite.features.tools.registry import offer_again
from chatsite.jobs.worker import start_waiting
from chatsite.llm import dialects, streaming
from chatsite.llm.dialects import Tools
from chatsite.llm.errors import LLMError
from chatsite.protocol import events
from chatsite.protocol.errors import CommandError
from chatsite.turns import limits, model_access, requests, runner, variations
from chatsite.turns.attempt import Request, make_result, read_outcome
from chatsite.turns.lifecycle import TurnClaim, TurnResult, give_up
from chatsite.turns.reply_streamer import ReplyStreamer
from memory.context import RequestContext
from memory.database import retry
from memory.leases import LeaseStatus, LostError
from memory.models import ModelCall
from memory.transcript import ActionError
from memory.view import rebuilding
from memory.view.variation import OF_TOOLS

from . import services, store
from .events import TrialEvent
from .models import TRIAL_LEASE, Trial

logger = logging.getLogger(__name__)

State = Trial.State


async def sweep_trials() -> None:
    """Write the trials that wait, as far as their users have free slots."""
    for trial in await database_sync_to_async(store.end_left_trials)():
        await tell_trial(trial)
    await start_waiting(store.claim_trial, run_trial)


async def start_trials() -> None:
    """Start waiting trials at once where tasks outlive the request, else in a sweep."""
    if runner.is_sweeping():
        runner.spawn_task(sweep_trials())


async def tell_trial(trial: Trial) -> None:
    await events.publish_event(trial.conversation_id, TrialEvent.from_trial(trial))


async def run_trial(claim: TurnClaim) -> None:
    """Write one trial to its end, however it ends."""
    crashed = claim, TurnResult(State.FAILED, "", error="internal")
    work = _write_answer(claim)
    found = await runner.work_to_end("trial", claim, work, store.finish_trial, crashed)
    if found is None:
        return
    (_claim, result), trial = found
    metrics.note_request("trial", result.error)
    if trial:
        logger.info("trial ended trial=%s state=%s", trial.pk, trial.state)
        await tell_trial(trial)
    await start_trials()


async def _write_answer(claim: TurnClaim) -> tuple[TurnClaim, TurnResult]:
    """Return the end of the trial under the claim of its last request.

    Raises LostError.
    """
    found = await retry(_read_trial, claim, until=claim.lease_end)
    if isinstance(found, TurnResult):
        return claim, found
    trial, names = found
    work_owner.set(trial.conversation.owner_id)
    tools = await offer_again(names) if names else Tools()
    dialect = None
    while True:
        request = await retry(
            _prepare_trial, claim, trial, tools, dialect, until=claim.lease_end
        )
        if isinstance(request, TurnResult):
            return claim, request
        begun = await retry(
            store.begin_trial,
            claim,
            request.built,
            request.model,
            until=claim.lease_end,
        )
        if begun is LeaseStatus.LOST:
            raise LostError
        if begun is LeaseStatus.CANCELLED:
            return claim, TurnResult(State.STOPPED, "")
        claim = begun
        await events.publish_event(
            claim.conversation_id, TrialEvent.for_new_attempt(trial, claim.attempt)
        )
        result, dialect = await _stream_trial(claim, trial, request)
        if dialect is None:
            return claim, result
        # It was refused for its form: each request has a record of its own.
        await retry(give_up, claim, result, until=claim.lease_end)


def _read_trial(claim: TurnClaim) -> tuple[Trial, list[str]] | TurnResult:
    """Return the trial, and the tools that its request offers."""
    rows = TRIAL_LEASE.filter_held(claim).select_related("conversation", "message")
    trial = rows.first()
    if trial is None:
        raise LostError
    if trial.cancel_requested_at:
        return TurnResult(State.STOPPED, "")
    try:
        limits.admit_spending(trial.conversation.owner_id)
    except CommandError:
        return TurnResult(State.FAILED, "", error="quota")
    call = requests.reply_call(trial.conversation, trial.message.seq)
    is_now = trial.variation.now
    if call is None or not (is_now or not rebuilding.is_erased(call)):
        return TurnResult(State.FAILED, "", error="message_deleted")
    return trial, call.refs.get("tools", call.refs.get("tools_refused", []))


def _prepare_trial(
    claim: TurnClaim, trial: Trial, tools: Tools, dialect: dialects.Dialect | None
) -> Request | TurnResult:
    """Return the reply's request with the changes of the trial."""
    conversation, variation = trial.conversation, trial.variation
    call = requests.reply_call(conversation, trial.message.seq)
    if call is None:
        return TurnResult(State.FAILED, "", error="message_deleted")
    usual = requests.model_of(conversation) if variation.now else call.model
    model = variation.model or usual
    if refusal := model_access.find_model_refusal(conversation.owner_id, model):
        return TurnResult(State.FAILED, "", error=refusal)
    dialect = dialect or dialects.find_dialect(model)
    try:
        if variation.now:
            question = services.find_question(conversation, call)
            built = requests.compose_now(
                conversation, trial.message, question, model, variation, dialect
            )
        else:
            tools = tools.fit_to(dialect)
            built = _compose_again(trial, call, model, tools, dialect)
    except ActionError:
        return TurnResult(State.FAILED, "", error="message_deleted")
    request = Request(claim, model, built, dialect)
    if request.is_too_long:
        return TurnResult(State.FAILED, "", error="context_length")
    return request


def _compose_again(
    trial: Trial, call: ModelCall, model: str, tools: Tools, dialect: dialects.Dialect
) -> RequestContext:
    conversation, variation = trial.conversation, trial.variation
    choice = call.refs.get("tool_choice", "")
    tools = replace(tools, choice=choice) if choice else tools
    refs = {name: value for name, value in call.refs.items() if name not in OF_TOOLS}
    built = variations.compose_varied(
        conversation,
        refs,
        variation,
        limit=requests.limit_of(model),
        tool_tokens=tools.tokens,
        **requests.form_of(model, dialect),
    )
    return requests.with_options(built, conversation, model, tools, variation)


@dataclass(slots=True)
class TrialStreamer(ReplyStreamer):
    """The streamer that passes on a trial of reply `seq` while it is written."""

    seq: int = 0

    def make_frame(self, tail: str) -> TrialEvent:
        place = (self.claim.row_id, self.seq, State.RUNNING)
        return TrialEvent(*place, self.claim.attempt, self.base, tail)

    async def save(self, text: str) -> LeaseStatus:
        renew = database_sync_to_async(store.TRIALS.renew_claim)
        return await renew(self.claim, text=text)


async def _stream_trial(
    claim: TurnClaim, trial: Trial, request: Request
) -> tuple[TurnResult, dialects.Dialect | None]:
    """Return the end of the request, and the form in which a retry may succeed.

    The form is that of a request that was refused for its own. Raises LostError.
    """
    stream = streaming.ReplyStream(
        request.model,
        request.built.messages,
        bind=request.built.options,
        dialect=request.dialect,
    )
    # Nothing wakes it for a stop: the next checkpoint sees one.
    streamer = TrialStreamer(claim, stream, asyncio.Event(), seq=trial.message.seq)
    error = await streamer.run()
    if streamer.hold is LeaseStatus.LOST:
        # Its row may be gone with a message that was deleted: what it took is paid.
        result = make_result(streamer, State.STOPPED)
        await retry(give_up, claim, result, until=claim.lease_end)
        raise LostError
    if streamer.hold is LeaseStatus.CANCELLED:
        return make_result(streamer, State.STOPPED), None
    instead = error.instead if isinstance(error, LLMError) else None
    return read_outcome(streamer, error), instead
