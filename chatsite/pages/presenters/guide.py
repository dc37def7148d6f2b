"""The second act of the demo, step by step.

A summary is edited, a question is asked that it answers, and a reply is proved. The
next step is read from the conversation, so a reload, another tab or an undo never gets
out of step.
"""

from dataclasses import dataclass

from django.utils.translation import gettext as _

from chatsite import slots
from chatsite.turns.lifecycle import unfinished
from memory import versions
from memory.models import Conversation, Message, ModelCall
from memory.view import rebuilding

from ..demo import ScriptLine, find_lines

# The slot where an app says why a request cost more than the one before.
DEARER = "guide.dearer"


@dataclass(frozen=True, slots=True)
class Guide:
    """The current step of the demo, and what it is about.

    `step`: "watch" while the page sends `lines`, "wait" until all is answered and
    summarised, "edit", "ask", "proof", that of DEARER if an app fills it, then "end".
    """

    step: str
    lines: tuple[ScriptLine, ...] = ()
    version: int = 0  # of the summary to edit
    seq: int = 0  # of the reply that is proved
    sha256: str = ""
    # Whether the request is still what was sent; None: something of it was deleted.
    verified: bool | None = None
    # Why its request cost more than the one before, once the user has asked: HTML.
    why: str = ""

    @property
    def steps(self) -> int:
        """The number of the user's steps."""
        return 4 if slots.is_filled(DEARER) else 3

    @property
    def heading(self) -> str:
        if self.step in ("watch", "wait"):
            return _("The demo")
        if self.step == "end":
            return _("That is Windowpane")
        return _("Your turn")


def find_guide_step(
    conversation: Conversation, *, proved: bool = False, asked: bool = False
) -> Guide:
    """Return the next step; `proved`: the user has opened the proof.

    `asked`: the user has asked why the reply cost more.
    """
    if lines := find_lines(conversation):
        return Guide("watch", tuple(lines))
    summaries = versions.active_summaries(conversation)
    if unfinished(conversation.pk).exists() or not summaries:
        return Guide("wait")
    edited = [summary for summary in summaries if summary.author_id]
    if not edited:
        return Guide("edit", version=summaries[0].version)
    since = max(summary.created_at for summary in edited)
    asked_since = conversation.messages.filter(
        role=Message.Role.USER,
        superseded_at=None,
        deleted_at=None,
        excluded_at=None,
        created_at__gt=since,
    )
    if not asked_since.exists():
        return Guide("ask")
    calls = conversation.model_calls.filter(purpose=ModelCall.Purpose.REPLY)
    calls = calls.exclude(message=None).select_related("message", "conversation")
    call = calls.order_by("-pk").first()
    if call is None or not proved:
        return Guide("proof")
    seq, is_told = call.message.seq, slots.is_filled(DEARER)
    # "" where it is gone since.
    if asked and (why := slots.draw(DEARER, conversation=conversation, seq=seq)):
        return Guide("end", seq=seq, why=why)
    verified: bool | None = rebuilding.verify_context(call)
    if not verified and rebuilding.is_erased(call):
        verified = None
    step = "dearer" if is_told and not asked else "end"
    return Guide(step, seq=seq, sha256=call.sha256, verified=verified)
