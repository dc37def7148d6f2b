"""One row of the list for all branches of a conversation."""

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import F, Q, QuerySet

from chatsite.plugins import ListRows
from memory import library
from memory.models import Conversation

from .models import Branch
from .services import list_branch, settle_tree

# What a row of the list is there for.
LISTED = Q(tree=None) | Q(branch__is_folded=False)
# Messages that a search finds in the branch that they are copied from.
COPIES = Q(
    conversation__tree__isnull=False,
    conversation__branch__seq__gt=F("seq"),
    conversation__branch__parent__conversation__isnull=False,
    conversation__branch__parent__conversation__deleted_at__isnull=True,
)


class TreeRows(ListRows):
    """The row of a tree is that of the branch which was opened or written in last."""

    def narrow(self, rows: QuerySet[Conversation]) -> QuerySet[Conversation]:
        return rows.filter(LISTED)

    def expand(self, found: Sequence[Conversation]) -> list[Conversation]:
        trees = {row.tree for row in found} - {None}
        if not trees:
            return [*found]
        others = Conversation.objects.filter(branch__tree__in=trees, deleted_at=None)
        others = others.exclude(pk__in=[row.pk for row in found])
        return [*found, *others.only("uuid", "title", "archived_at", "tree")]

    def find_deleted(self, user: AbstractBaseUser, uuids: Sequence[UUID]) -> list[UUID]:
        deleted = library.deleted_lately(user).order_by()
        found = deleted.filter(uuid__in=uuids, tree__isnull=False)
        together = {(row.tree, row.deleted_at) for row in found}
        if not together:
            return [*uuids]
        trees = {tree for tree, _at in together}
        others = [
            row.uuid
            for row in deleted.filter(tree__in=trees)
            if (row.tree, row.deleted_at) in together
        ]
        return [*{*uuids, *others}]

    def note_restored(self, found: Sequence[Conversation]) -> None:
        trees = {row.tree for row in found} - {None}
        rows = Branch.objects.filter(tree__in=trees, is_folded=False)
        shown = rows.filter(conversation__deleted_at=None).exclude(conversation=None)
        counts = Counter(shown.values_list("tree", flat=True))
        # An import brings many, of which nearly all are in order.
        for tree in (each for each in trees if counts[each] != 1):
            settle_tree(tree)

    def note_use(self, conversation: Conversation) -> None:
        if conversation.tree is not None:
            list_branch(conversation)
