"""Read and write the feedback of users on replies."""

from django.db import transaction
from django.utils.translation import gettext as _

from memory.models import Conversation, Message
from memory.transcript import ActionError, check_note, find_reply

from .models import Feedback

# In the log of what the owner has done.
ACTION = "feedback"


def find_feedback(conversation: Conversation, seq: int) -> Feedback:
    """Return the feedback on message `seq`; without a verdict there is none.

    Raises ActionError unless the message is a reply that still has its text.
    """
    return _read_feedback(find_reply(conversation.messages, seq))


@transaction.atomic
def give_feedback(
    conversation: Conversation, seq: int, verdict: str, comment: object = None
) -> tuple[Feedback, Feedback]:
    """Replace the feedback on reply `seq`; what it was, and what it is now.

    Without a comment the one that is there stays; without a verdict all of it goes.
    Raises ActionError and TextError.
    """
    if verdict not in ("", *Feedback.Verdict.values):
        raise ActionError(_("The verdict must be good or bad."))
    if conversation.is_temporary:
        raise ActionError(_("Replies of a temporary conversation can't be marked."))
    # Its text may be about to be deleted: then this waits, and finds none.
    reply = find_reply(conversation.messages.select_for_update(), seq)
    before = _read_feedback(reply)
    conversation.changes.create(action=ACTION, seq=seq)
    if not verdict:
        Feedback.objects.filter(message=reply).delete()
        return before, Feedback()
    kept = (
        before.comment if comment is None else check_note(comment, Feedback.MAX_CHARS)
    )
    values = {"conversation": conversation, "verdict": verdict, "comment": kept}
    return before, Feedback.objects.update_or_create(message=reply, defaults=values)[0]


def forget_feedback(conversation: Conversation, seq: int, **_: object) -> None:
    """Message `seq` was deleted: what is said of it can quote it."""
    Feedback.objects.filter(conversation=conversation, message__seq=seq).delete()


def _read_feedback(reply: Message) -> Feedback:
    return Feedback.objects.filter(message=reply).first() or Feedback()
