"""The actions of a user on trials.

They start one, have the next message sent like it, and make its answer the reply of a
branch.
"""

from dataclasses import replace
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from chatsite.protocol.errors import CommandError
from chatsite.turns import commands, model_access, variations
from chatsite.turns.copying import copies
from chatsite.turns.models import Turn
from chatsite.turns.requests import reply_call
from memory import bundle, context, prompts, transcript
from memory.compaction import lease
from memory.engine.policy import PRESETS
from memory.models import Conversation, Message, ModelCall
from memory.transcript import ActionError
from memory.view import rebuilding
from memory.view.variation import MOST_OFF, Variation, is_part_key, list_sent

from ..stored_requests import is_proved
from . import store
from .models import Trial

# In the log of what the owner has done.
USE_NEXT, FORGET_NEXT = "trial_next", "trial_forget"
# Of one reply so many are shown, the newest first.
MOST_SHOWN = 20


def find_request(
    conversation: Conversation, seq: int, *, now: bool = False
) -> ModelCall:
    """Return the request of reply `seq`, as far as it can be sent again.

    `now`: only its question is. Raises ActionError.
    """
    call = reply_call(conversation, seq)
    if call is None:
        unknown = _(
            "No request of a reply #%(seq)s is known, so it can't be tried again."
        )
        raise ActionError(unknown % {"seq": seq})
    if any(name in call.refs for name in rebuilding.rebuilders):
        words = _("Another client sent this request, so it can't be tried again here.")
        raise ActionError(words)
    if now:
        find_question(conversation, call)
    elif not is_proved(call):
        gone = _("A text of this request was deleted, so it can't be tried again.")
        raise ActionError(gone)
    return call


def _check_offered(conversation: Conversation, variation: Variation) -> Variation:
    """Return the variation with its words as they are stored.

    Raises ActionError and TextError.
    """
    offered = model_access.list_models_for(conversation.owner_id)
    if variation.model and variation.model not in offered:
        unknown = _("The model %(model)s is not offered here. Choose another one.")
        raise ActionError(unknown % {"model": variation.model[:100]})
    if len(variation.off) > MOST_OFF or not all(map(is_part_key, variation.off)):
        raise ActionError(_("There is no such part of the request."))
    if variation.preset and variation.preset not in PRESETS:
        raise ActionError(_("There is no such preset."))
    text = variation.edited and transcript.check_message_text(variation.text)
    return Variation.from_json(variation.to_json(), text or "")


def _check_messages(
    conversation: Conversation, refs: dict[str, Any], variation: Variation
) -> None:
    """Raise ActionError if the request has no such message, or has it already."""
    sent = list_sent(refs)
    for seq in filter(None, (variation.edited, variation.left_out)):
        if seq not in sent:
            missing = _("Message #%(seq)s is not in this request by itself.")
            raise ActionError(missing % {"seq": seq})
    newest = refs.get("newest") or 0
    if variation.left_out and variation.left_out == newest:
        raise ActionError(_("The message that is answered can't be left out."))
    if back := variation.brought_back:
        if back in sent:
            raise ActionError(_("Message #%(seq)s is in it already.") % {"seq": back})
        rows = conversation.messages.filter(seq=back, deleted_at=None)
        if back > newest or not rows.exists():
            missing = _("There is no message #%(seq)s before it to bring back.")
            raise ActionError(missing % {"seq": back})


def start_trial(conversation: Conversation, seq: int, variation: Variation) -> Trial:
    """Create a trial of reply `seq` that waits to be written.

    Raises ActionError, TextError and CommandError.
    """
    commands.check_writable(conversation)
    with transaction.atomic():
        # One that is being erased takes no more rows, and no message of it is deleted
        # between the look at the request and the row that can quote it.
        _lock_conversation(conversation)
        call = find_request(conversation, seq, now=variation.now)
        _check_messages(conversation, call.refs, variation)
        variation = _check_offered(conversation, variation)
        model = variation.model or call.model
        model_access.check_model(conversation.owner_id, model)
        trial = Trial.objects.create(
            conversation=conversation,
            message=conversation.messages.get(seq=seq),
            changes=variation.to_json(),
            words=variation.text,
            model=model,
        )
        store.admit_trial(conversation.owner_id)
    return trial


def ask_again(conversation: Conversation, seq: int) -> Trial:
    """Start a trial of reply `seq` with what the model reads now.

    Raises what start_trial() raises.
    """
    varied = variations.find_next(conversation) or Variation()
    return start_trial(conversation, seq, replace(varied, now=True))


def find_question(conversation: Conversation, call: ModelCall) -> Message:
    """Return the message that a request answered; raise ActionError if it is gone."""
    rows = context.visible_messages(conversation)
    if question := rows.filter(seq=call.refs.get("newest") or 0).first():
        return question
    raise ActionError(_("The model does not see the question of this reply any more."))


def _lock_conversation(conversation: Conversation) -> None:
    rows = Conversation.objects.select_for_update().filter(pk=conversation.pk)
    if not rows.filter(deleted_at=None).exists():
        raise CommandError("not_found", _("This conversation no longer exists."))


def list_trials(conversation: Conversation, seq: int) -> QuerySet[Trial]:
    rows = conversation.trials.filter(message__seq=seq).order_by("-pk")
    return rows.select_related("message", "call")[:MOST_SHOWN]


def forget_trials(conversation: Conversation, seq: int, **_: object) -> None:
    """Erase the texts of trials that can quote message `seq`, which was deleted.

    An answer can quote it that was given with it in sight, and so can new words for it.
    """
    conversation.trials.filter(message__seq__gte=seq).delete()


@transaction.atomic
def use_next(conversation: Conversation, trial: Trial) -> None:
    """Have only the next message sent as the trial was.

    Raises ActionError, TextError and CommandError: models come and go, and an import
    brings any.
    """
    commands.check_writable(conversation)
    _lock_conversation(conversation)
    if not conversation.trials.filter(pk=trial.pk).exists():
        raise ActionError(_("A text of this request was deleted."))
    varied = _check_offered(conversation, trial.variation)
    variations.set_next(conversation, varied)
    conversation.changes.create(action=USE_NEXT, seq=trial.message.seq)


def forget_next(conversation: Conversation) -> None:
    """Have the next message sent like all others again."""
    variations.set_next(conversation, None)
    conversation.changes.create(action=FORGET_NEXT)


def make_reply(conversation: Conversation, trial: Trial) -> Conversation:
    """Create a branch in which the trial's answer is the reply.

    Raises ActionError and CommandError.
    """
    if trial.state != Trial.State.DONE or not trial.text or trial.call is None:
        raise ActionError(_("Only an answer that is complete can be made the reply."))
    refs, add = trial.call.refs, partial(_add_reply, conversation, trial)
    steps = [last for _first, last in refs.get("steps", ())]
    return copies.branch_in_batches(
        conversation, max([refs["newest"], *steps]), finish=add
    )


def _add_reply(conversation: Conversation, trial: Trial, made: Conversation) -> None:
    text, call = trial.text, trial.call
    turn = made.turns.get(user_message__seq=call.refs["newest"])
    seq = transcript.reserve_numbers(made, 1)
    written = transcript.append_reply(made, seq=seq, text=text)
    texts = conversation.prompts.filter(pk__in=prompts.named_in(call.refs))
    prompts.keep_texts(made, dict(texts.values_list("sha256", "text")))
    kept = {name: getattr(call, name) for name in bundle.CALL_FIELDS}
    values = {**kept, "purpose": ModelCall.Purpose.REPLY, "message": written}
    mine = ModelCall.objects.create(conversation=made, **values)
    ended = {"state": Turn.State.DONE, "error": "", "text": text, "reply": written}
    made.turns.filter(pk=turn.pk).update(
        **ended, reply_seq=seq, call=mine, model=call.model
    )
    lease.mark_due(made.pk)
