"""The page parts of feedback.

They are the buttons under a reply, for the page and all other tabs, and a section in
staff's inspector of a request.
"""

from dataclasses import dataclass
from typing import ClassVar

from django.db.models import F
from django.template.loader import render_to_string

from chatsite.pages.presenters.transcript_pane import ShownMessage
from chatsite.plugins import AppEvent
from chatsite.review import redaction
from chatsite.review.rights import Rights
from memory.models import Conversation

from .models import Feedback


def draw_buttons(
    conversation: Conversation, seq: int, verdict: str, *, is_fragment: bool = False
) -> str:
    """Return the buttons under reply `seq`; a fragment replaces those on a page."""
    values = {"conversation": conversation, "seq": seq, "verdict": verdict}
    values["is_fragment"] = is_fragment
    return render_to_string("feedback/_buttons.html", values)


def draw_in_message(conversation: Conversation, message: ShownMessage) -> str:
    """Return the buttons, if feedback can be given on the message."""
    is_deleted = message.location.kind == "deleted"
    if conversation.is_temporary or is_deleted or not message.is_reply:
        return ""
    return draw_buttons(conversation, message.seq, message.extra["verdict"] or "")


COLUMNS = {"verdict": F("feedback__verdict")}


@dataclass(frozen=True, slots=True)
class FeedbackEvent(AppEvent):
    """A change of the user's feedback on reply `seq`: "good", "bad" or "" for none."""

    type: ClassVar = "feedback"
    turn: int
    seq: int
    verdict: str

    def draw_html(self, conversation: Conversation) -> str:
        return draw_buttons(conversation, self.seq, self.verdict, is_fragment=True)


def draw_inspected(conversation: Conversation, rights: Rights, seq: int) -> str:
    """Return the user's feedback on reply `seq`, for staff."""
    rows = redaction.select_readable(conversation.feedback, rights, Feedback.TEXTS)
    row = rows.filter(message__seq=seq).first()
    if row is None:
        return ""
    comment = row.comment if rights.content else redaction.show_text(row, "comment")
    values = {"feedback": row, "comment": comment}
    return render_to_string("feedback/_inspected.html", values)
