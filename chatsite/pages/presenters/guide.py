"""The second act of the demo, step by step.

A summary is edited, the page asks a question that it answers, and the user asks again
without it. The next step is read from the conversation, so a reload, another tab or an
undo never gets out of step.
"""

from dataclasses import dataclass

from django.utils.translation import gettext as _

from chatsite import slots
from chatsite.turns import variations
from chatsite.turns.lifecycle import unfinished
from memory import context, versions
from memory.models import Conversation, Message

from ..demo import QUESTION, ScriptLine, find_lines


@dataclass(frozen=True, slots=True)
class Guide:
    """The current step of the demo, and what it is about.

    `step`: "watch" while the page sends `lines`, "wait" until all is answered and
    summarised, "edit", "ask" with one more line, "off" where an app can ask again, then
    "end".
    """

    step: str
    lines: tuple[ScriptLine, ...] = ()
    version: int = 0  # of the summary to edit
    is_asked_again: bool = False


def find_guide_step(conversation: Conversation) -> Guide:
    """Return the next step."""
    if lines := find_lines(conversation):
        return Guide("watch", tuple(lines))
    summaries = versions.active_summaries(conversation)
    if unfinished(conversation.pk).exists() or not summaries:
        return Guide("wait")
    if not any(summary.author_id for summary in summaries):
        return Guide("edit", version=summaries[0].version)
    edited = conversation.summaries.exclude(author=None).earliest("version")
    asked_since = context.visible_messages(conversation).filter(
        role=Message.Role.USER, created_at__gt=edited.created_at
    )
    if not asked_since.exists():
        # The same id in each tab, and another one where the question was deleted.
        line = ScriptLine(f"demo-ask-{conversation.next_seq}", _(QUESTION))
        return Guide("ask", (line,))
    is_off = bool(variations.find_off(conversation))
    may_ask = bool(slots.draw("desk", conversation=conversation, reply=1))
    return Guide("off" if may_ask and not is_off else "end", is_asked_again=is_off)
