"""One row of the list for all branches of a conversation."""

from collections import Counter
from collections.abc import Iterable, Sequence
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.db.models import F, Q, QuerySet

from memory import library, transcript
from memory.models import Conversation

from .forks import Node, find_needless
from .models import Branch

# The conversations that a row of the list represents.
LISTED = Q(tree=None) | Q(branch__is_folded=False)
# Messages that a search finds in the branch that they are copied from.
COPIES = Q(
    conversation__tree__isnull=False,
    conversation__branch__seq__gt=F("seq"),
    conversation__branch__parent__conversation__isnull=False,
    conversation__branch__parent__conversation__deleted_at__isnull=True,
)


def narrow_rows(rows: QuerySet[Conversation]) -> QuerySet[Conversation]:
    """Return the conversations that have a row in the list.

    Of a tree, that is the branch which was opened or written in last.
    """
    return rows.filter(LISTED)


def expand_rows(found: Sequence[Conversation]) -> list[Conversation]:
    """Return all branches of these rows: an action on a row applies to all of them."""
    trees = {row.tree for row in found} - {None}
    if not trees:
        return [*found]
    others = Conversation.objects.filter(branch__tree__in=trees, deleted_at=None)
    others = others.exclude(pk__in=[row.pk for row in found])
    return [*found, *others.only("uuid", "title", "archived_at", "tree")]


def find_deleted_rows(user: AbstractBaseUser, uuids: Sequence[UUID]) -> list[UUID]:
    """Return the same, of rows that were deleted."""
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


def note_restored(found: Sequence[Conversation]) -> None:
    """Settle the trees of conversations that were restored or imported."""
    trees = {row.tree for row in found} - {None}
    rows = Branch.objects.filter(tree__in=trees, is_folded=False)
    shown = rows.filter(conversation__deleted_at=None).exclude(conversation=None)
    counts = Counter(shown.values_list("tree", flat=True))
    # An import brings many, of which nearly all are in order.
    for tree in (each for each in trees if counts[each] != 1):
        settle_tree(tree)


def note_use(conversation: Conversation) -> None:
    """Show this branch in the list: its user opens it, or writes in it."""
    if conversation.tree is not None:
        list_branch(conversation)


def nodes_of(branches: Iterable[Branch]) -> dict[int, Node]:
    return {row.pk: Node(row.pk, row.parent_id, row.seq) for row in branches}


def lock_tree(tree: int) -> list[Branch]:
    """Return its branches, and lock them for the transaction.

    The first one exists as long as any does.
    """
    rows = Branch.objects.filter(tree=tree).order_by("pk")
    list(rows.select_for_update().filter(parent=None).values_list("pk"))
    return list(rows)


def lock_branch(conversation: Conversation) -> None:
    """Lock as sending a message does: its row before those of the tree."""
    locked = Conversation.objects.select_for_update().filter(pk=conversation.pk)
    list(locked.values_list("pk"))
    lock_tree(conversation.tree)


@transaction.atomic
def list_branch(conversation: Conversation) -> None:
    """Show this branch in the list from now on, under the title of the shown one."""
    own = Branch.objects.filter(conversation=conversation, is_folded=True).first()
    if own is None:
        return
    lock_branch(conversation)
    shown = Branch.objects.filter(tree=own.tree, is_folded=False)
    shown = shown.filter(conversation__deleted_at=None).exclude(conversation=None)
    if listed := shown.select_related("conversation").first():
        named = listed.conversation
        values = {name: getattr(named, name) for name in ("title", "title_set_by")}
        values["title_seqs"] = transcript.list_title_seqs(named)
        Conversation.objects.filter(pk=conversation.pk).update(**values)
        for name, value in values.items():
            setattr(conversation, name, value)
    # Not one that was deleted alone: the list offers to bring it back.
    Branch.objects.filter(pk__in=[row.pk for row in shown]).update(is_folded=True)
    Branch.objects.filter(pk=own.pk).update(is_folded=False)


@transaction.atomic
def settle_tree(tree: int) -> None:
    """List one existing branch after others were deleted, erased or restored.

    Rows of branches that are no longer needed are deleted.
    """
    rows = lock_tree(tree)
    there = {row.pk for row in rows if row.conversation_id}
    needless = find_needless([*nodes_of(rows).values()], there)
    Branch.objects.filter(pk__in=needless).delete()
    alive = Branch.objects.filter(pk__in=there, conversation__deleted_at=None)
    alive = alive.order_by("-conversation__updated_at", "-pk")
    listed = [row.pk for row in alive if not row.is_folded]
    Branch.objects.filter(pk__in=listed[1:]).update(is_folded=True)
    if not listed and (newest := alive.first()):
        Branch.objects.filter(pk=newest.pk).update(is_folded=False)
