"""The second act of the demo, step by step: a summary edited, a message pinned, a reply
proved. Which step comes next is read from the conversation, so a reload, another tab or
an undo is never out of step.
"""

from dataclasses import dataclass

from chatsite.turns.lifecycle import unfinished
from memory import context, versions
from memory.models import Conversation, Message, ModelCall

from ..demo import TO_PIN


@dataclass(frozen=True, slots=True)
class Guide:
    """`step`: "wait" until all is answered and summarised, "edit", "pin", "proof", then
    "end"; and what it is about."""

    step: str
    version: int = 0  # of the summary to edit
    seq: int = 0  # of the message to pin, or of the reply that is proved
    sha256: str = ""
    # Whether the request is still what was sent; None: something of it was deleted.
    verified: bool | None = None


def of(conversation: Conversation, *, proved: bool = False) -> Guide:
    """The step that comes next; `proved`: the person has looked at the proof."""
    summaries = versions.active(conversation)
    if unfinished(conversation.pk).exists() or not summaries:
        return Guide("wait")
    if not any(summary.author_id for summary in summaries):
        return Guide("edit", version=summaries[0].version)
    pinned = conversation.messages.filter(pinned_at__isnull=False)
    if not pinned.exists() and (seq := _to_pin(conversation)):
        return Guide("pin", seq=seq)
    call = _latest_call(conversation)
    if call is None or not proved:
        return Guide("proof")
    verified: bool | None = context.verify(call)
    if not verified and context.is_erased(call):
        verified = None
    return Guide("end", seq=call.message.seq, sha256=call.sha256, verified=verified)


def _to_pin(conversation: Conversation) -> int | None:
    """The message of the script that is worth it; any other where it is not there."""
    said = conversation.messages.filter(
        role=Message.Role.USER, superseded_at=None, deleted_at=None, excluded_at=None
    )
    seqs = list(said.order_by("seq").values_list("seq", flat=True)[: TO_PIN + 1])
    return seqs[-1] if seqs else None


def _latest_call(conversation: Conversation) -> ModelCall | None:
    calls = conversation.model_calls.filter(purpose=ModelCall.Purpose.REPLY)
    calls = calls.exclude(message=None).select_related("message", "conversation")
    return calls.order_by("-pk").first()
