"""Joining two conversations of a client by hand.

Their owner says that the second one continues the first. No message moves, so nothing
that was proved changes, and it can be undone. Requests that fitted both of them are
then no longer in doubt.
"""

from collections.abc import Sequence
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from chatsite.contrib.endpoint.models import ClientConversation
from memory.models import Conversation

JOIN, SEPARATE = "join", "separate"
# Conversations that a user can choose from.
MAX_OFFERED = 50


class JoinError(ValueError):
    """Raised for conversations that can't be joined; the text says why, for users."""


def list_of_owner(owner_id: int) -> QuerySet[ClientConversation]:
    return ClientConversation.objects.filter(
        conversation__owner_id=owner_id,
        conversation__deleted_at=None,
        conversation__staged_by=None,
    )


def list_offered(own: ClientConversation) -> list[Conversation]:
    """Return the conversations that it can continue, newest first.

    None of them is of its own family.
    """
    rows = list_of_owner(own.conversation.owner_id).exclude(family=own.family)
    rows = rows.select_related("conversation").order_by("-conversation__updated_at")
    return [each.conversation for each in rows[:MAX_OFFERED]]


@transaction.atomic
def join_conversations(later: Conversation, earlier: Conversation) -> None:
    """Mark `later` as the continuation of `earlier`, both of one user.

    Raise JoinError.
    """
    own = _lock_of_client(later)
    other = list_of_owner(later.owner_id).filter(pk=earlier.pk).first()
    if other is None:
        raise JoinError(_("Choose another conversation of a client."))
    if own.joined_id is not None:
        raise JoinError(_("It is joined to another one already. Undo that first."))
    if own.family == other.family:
        raise JoinError(_("These two belong together already."))
    own.joined = earlier
    own.save(update_fields=["joined"])
    _sort_families(later.owner_id, (own.family, other.family))
    later.changes.create(action=JOIN)


@transaction.atomic
def separate_conversation(later: Conversation) -> None:
    """Undo join_conversations(); do nothing if it is undone already."""
    own = _lock_of_client(later)
    if own.joined_id is None:
        return
    own.joined = None
    own.save(update_fields=["joined"])
    _sort_families(later.owner_id, (own.family,))
    later.changes.create(action=SEPARATE)


def _lock_of_client(conversation: Conversation) -> ClientConversation:
    """Return the row, locked as for deciding a request: one at a time per user."""
    users = get_user_model().objects.select_for_update(no_key=True)
    users.filter(pk=conversation.owner_id).values("pk").first()
    rows = list_of_owner(conversation.owner_id)
    found = rows.filter(pk=conversation.pk).first()
    if found is None:
        raise JoinError(_("Only conversations of a client can be joined."))
    return found


def _sort_families(owner_id: int, families: Sequence[UUID]) -> None:
    """Give joined conversations the family of the oldest of them."""
    rows = [
        *ClientConversation.objects.filter(
            conversation__owner_id=owner_id, family__in=families
        ).order_by("pk")
    ]
    own = {row.pk: row.own_family or row.family for row in rows}
    groups = {family: {family} for family in own.values()}
    for row in rows:
        if row.joined_id in own:
            both = groups[own[row.pk]] | groups[own[row.joined_id]]
            groups |= dict.fromkeys(both, both)
    for row in rows:
        row.own_family = own[row.pk]
        row.family = next(each for each in own.values() if each in groups[own[row.pk]])
    ClientConversation.objects.bulk_update(rows, ["family", "own_family"], 200)
