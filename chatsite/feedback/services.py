"""Reads and writes what a person thinks of a reply."""

from dataclasses import dataclass

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from memory import transcript
from memory.engine.blank import is_blank
from memory.models import Conversation, Message
from memory.transcript import ActionError, TextError

from .models import Feedback, is_reply

# In the log of what the owner has done.
ACTION = "feedback"


@dataclass(frozen=True, slots=True)
class Given:
    """One reply's feedback; without a verdict there is none."""

    verdict: str = ""
    comment: str = ""


def find_feedback(conversation: Conversation, seq: int) -> Given:
    """Raises ActionError unless message `seq` is a reply that still has its text."""
    return _read_given(_find_reply(conversation.messages, seq))


@transaction.atomic
def give_feedback(
    conversation: Conversation, seq: int, verdict: str, comment: object = None
) -> tuple[Given, Given]:
    """Replace the feedback on reply `seq`; what it was, and what it is now.

    Without a comment the one that is there stays; without a verdict all of it goes.
    Raises ActionError and TextError.
    """
    if verdict not in ("", *Feedback.Verdict.values):
        raise ActionError(_("The verdict must be good or bad."))
    if conversation.is_temporary:
        raise ActionError(_("Replies of a temporary conversation can't be marked."))
    # Its text may be about to be deleted: then this waits, and finds none.
    reply = _find_reply(conversation.messages.select_for_update(), seq)
    before = _read_given(reply)
    conversation.changes.create(action=ACTION, seq=seq)
    if not verdict:
        Feedback.objects.filter(message=reply).delete()
        return before, Given()
    kept = before.comment if comment is None else check_comment(comment)
    values = {"conversation": conversation, "verdict": verdict, "comment": kept}
    Feedback.objects.update_or_create(message=reply, defaults=values)
    return before, Given(verdict, kept)


def forget_feedback(conversation: Conversation, seq: int, **_: object) -> None:
    """Message `seq` was deleted: what is said of it can quote it."""
    Feedback.objects.filter(conversation=conversation, message__seq=seq).delete()


def check_comment(text: object) -> str:
    """The comment as it will be stored. Raises TextError."""
    if not isinstance(text, str) or not transcript.is_storable(text):
        raise TextError("bad_text", _("The comment must be a text."))
    text = "" if is_blank(text) else text.replace("\r\n", "\n").strip()
    if len(text) > Feedback.MAX_CHARS:
        too_long = _(
            "The comment has %(count)s characters; the limit is %(limit)s. Shorten it."
        )
        values = {"count": f"{len(text):,}", "limit": f"{Feedback.MAX_CHARS:,}"}
        raise TextError("too_long", too_long % values)
    return text


def _find_reply(messages: QuerySet[Message], seq: int) -> Message:
    reply = messages.only("role", "tool_calls", "deleted_at").filter(seq=seq).first()
    if reply is None or not is_reply(reply):
        raise ActionError(_("There is no reply #%(seq)s.") % {"seq": seq})
    return reply


def _read_given(reply: Message) -> Given:
    rows = Feedback.objects.filter(message=reply)
    return Given(*rows.values_list("verdict", "comment").first() or ())
