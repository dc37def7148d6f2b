"""Marking of replies as examples, and lists of a user's examples."""

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.db.models import F, QuerySet
from django.utils.translation import gettext as _

from chatsite.database import lock_user
from memory.models import Conversation
from memory.transcript import ActionError, check_note, find_reply

from .models import Example, ExampleAnswer

# The name of the action in the owner's log.
ACTION = "example"
# Maximum of examples per user.
MOST = 1_000

Label = Example.Label


def list_own_examples(user: AbstractBaseUser, label: str = "") -> QuerySet[Example]:
    """Return what a user has marked in their own conversations, the newest first.

    A `label` that exists limits the list to this kind.
    """
    rows = Example.objects.filter(
        author=user, conversation__owner=user, conversation__deleted_at=None
    )
    return rows.filter(label=label) if label in Label.values else rows


def find_example(
    conversation: Conversation, seq: int, author: AbstractBaseUser
) -> Example | None:
    """Return the example that `author` made of reply `seq`, or None.

    Raises ActionError if there is no such reply.
    """
    reply = find_reply(conversation.messages, seq)
    return Example.objects.filter(message=reply, author=author).first()


@transaction.atomic
def mark_example(
    conversation: Conversation,
    seq: int,
    author: AbstractBaseUser,
    label: str,
    correction: object = "",
) -> Example:
    """Make reply `seq` an example of `author`, or replace the one that exists.

    Raises ActionError and TextError.
    """
    if label not in Label.values:
        raise ActionError(_("Choose what kind of example it is."))
    if conversation.is_temporary:
        raise ActionError(_("Replies of a temporary conversation can't be marked."))
    text = check_note(correction, Example.MAX_CHARS)
    if not text and label != Label.GOOD:
        raise ActionError(_("Write what should have been said."))
    # The lock serialises requests of one user, so that both together keep the limit.
    lock_user(author.pk)
    # A deletion of the text may be under way: then this waits, and finds no reply.
    reply = find_reply(conversation.messages.select_for_update(), seq)
    known = Example.objects.filter(author=author)
    if not known.filter(message=reply).exists() and known.count() >= MOST:
        full = _("You have %(limit)s examples, which is the limit. Remove one first.")
        raise ActionError(full % {"limit": f"{MOST:,}"})
    _log(conversation, seq, author)
    example, _made = Example.objects.update_or_create(
        message=reply,
        author=author,
        defaults={"conversation": conversation, "label": label, "correction": text},
    )
    return example


@transaction.atomic
def unmark_example(
    conversation: Conversation, seq: int, author: AbstractBaseUser
) -> None:
    """Delete the author's example, its correction and the models' answers."""
    found = Example.objects.filter(
        conversation=conversation, message__seq=seq, author=author
    )
    if found.delete()[0]:
        _log(conversation, seq, author)


def _log(conversation: Conversation, seq: int, author: AbstractBaseUser) -> None:
    # Actions of staff are in the access log.
    if author.pk == conversation.owner_id:
        conversation.changes.create(action=ACTION, seq=seq)


def forget_examples(conversation: Conversation, seq: int, **_: object) -> None:
    """Delete the examples and answers that can quote deleted message `seq`.

    Those are examples of this reply, and answers to the requests of later ones.
    """
    rows = Example.objects.filter(conversation=conversation)
    rows.filter(message__seq=seq).delete()
    ExampleAnswer.objects.filter(
        example__in=rows, example__message__seq__gt=seq
    ).delete()


def describe_own(user: AbstractBaseUser) -> list[dict[str, object]]:
    """Return a user's own examples for the download of the account."""
    rows = list_own_examples(user).select_related("conversation").order_by("pk")
    return [
        {
            "conversation": str(row.conversation.uuid),
            "reply": row.seq,
            "label": row.label,
            "correction": row.correction,
            "created_at": row.created_at,
        }
        for row in rows.annotate(seq=F("message__seq"))
    ]
