"""The links to conversations: made, ended, found, listed and counted.

link_contents.py has what they show.
"""

import secrets
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from chatsite.turns.models import Turn
from memory import context
from memory.models import Conversation

from .models import Share

TOKEN_BYTES = 24
# Days that a link is open for, unless another of dialog.ENDS was chosen.
USUAL_DAYS = 30
# Limits of one conversation: open links, and ended ones that are kept for staff.
MOST_OPEN, MOST_ENDED = 20, 100
# Links that staff have ended, as shown to their owner.
MOST_REVOKED = 20
# In the log of what the owner has done.
MADE, REVOKED = "share", "revoke"
# The columns of each link in the download of the account.
DESCRIBED = (
    *("last_seq", "with_view", "with_images", "without_rules", "choices"),
    *("created_at", "expires_at", "revoked_at", "reason", "opens", "last_opened_at"),
)


class ShareError(ValueError):
    """A link that can't be made now; the message says why."""


@transaction.atomic
def create_share(
    conversation: Conversation,
    *,
    last_seq: int | None = None,
    days: int = USUAL_DAYS,
    **shown: Any,
) -> Share:
    """Return a new link to the conversation as it is, or up to message `last_seq`.

    `shown`: the columns of the link that say what else it shows. Raises ShareError if
    there is nothing to show, or if there are too many links.
    """
    # The lock keeps messages from being added meanwhile.
    Conversation.objects.select_for_update().get(pk=conversation.pk)
    if conversation.is_temporary:
        raise ShareError(_("A temporary conversation has no links: it does not last."))
    rows = conversation.shares.all()
    if only_open(rows).count() >= MOST_OPEN:
        text = _("This conversation has %(count)s links. Revoke one of them first.")
        raise ShareError(text % {"count": MOST_OPEN})
    newest = newest_to_share(conversation, last_seq)
    if newest is None:
        raise ShareError(_("There is no finished reply to share yet."))
    ended = rows.exclude(pk__in=only_open(rows)).order_by("-pk")
    rows.filter(pk__in=list(ended.values_list("pk", flat=True)[MOST_ENDED:])).delete()
    made = conversation.shares.create(
        token=secrets.token_urlsafe(TOKEN_BYTES),
        last_seq=newest,
        expires_at=Now() + timedelta(days=days),
        **shown,
    )
    made.refresh_from_db()
    conversation.changes.create(action=MADE, seq=newest)
    return made


def newest_to_share(
    conversation: Conversation, last_seq: int | None = None
) -> int | None:
    """Return the number of the newest message that a link made now would show, or None.

    An open turn is left out with its question.
    """
    rows = context.visible_messages(conversation)
    if last_seq is not None:
        rows = rows.filter(seq__lte=last_seq)
    unfinished = conversation.turns.filter(state__in=Turn.UNFINISHED).order_by("id")
    begun = unfinished.values_list("user_message__seq", flat=True).first()
    if begun is not None:
        rows = rows.filter(seq__lt=begun)
    return rows.order_by("-seq").values_list("seq", flat=True).first()


def revoke_share(conversation: Conversation, pk: int) -> bool:
    """End a link of the conversation, for good; False: there is none to end."""
    rows = conversation.shares.filter(pk=pk, revoked_at=None)
    if not rows.update(revoked_at=Now()):
        return False
    conversation.changes.create(action=REVOKED)
    return True


def revoke_as_staff(share: Share, reason: str) -> bool:
    """End an open link permanently, for a reason that its owner reads.

    Return False if it has ended already.
    """
    rows = only_open(Share.objects.filter(pk=share.pk))
    return bool(rows.update(revoked_at=Now(), reason=reason))


def list_revoked_by_staff(rows: QuerySet[Share]) -> QuerySet[Share]:
    """Return the newest links that the staff have ended."""
    return rows.exclude(reason="").order_by("-revoked_at", "-pk")[:MOST_REVOKED]


def only_open(rows: QuerySet[Share]) -> QuerySet[Share]:
    return rows.filter(revoked_at=None, expires_at__gt=Now())


def list_shares_of_user(user: AbstractBaseUser) -> QuerySet[Share]:
    """Return the links of all conversations of a user, the newest first."""
    rows = Share.objects.filter(conversation__owner=user)
    return rows.filter(conversation__deleted_at=None).order_by("-pk")


def describe_shares(user: AbstractBaseUser) -> list[dict[str, Any]]:
    """Return the links of a user as data, without their addresses.

    Everyone who gets the file could open them.
    """
    rows = list_shares_of_user(user).order_by("pk")
    return list(rows.values(*DESCRIBED, uuid=F("conversation__uuid")))


def find_share(token: str) -> Share:
    """Return the share of a link.

    Raises Share.DoesNotExist for every reason: the link never existed, was revoked or
    has ended, its conversation or owner is gone, or the site has no links.
    """
    if not settings.SHARE_LINKS:
        raise Share.DoesNotExist
    rows = Share.objects.filter(
        conversation__deleted_at=None, conversation__owner__is_active=True
    )
    return only_open(rows).select_related("conversation").get(token=token)


def count_opening(share: Share) -> None:
    rows = Share.objects.filter(pk=share.pk)
    rows.update(opens=F("opens") + 1, last_opened_at=Now())
