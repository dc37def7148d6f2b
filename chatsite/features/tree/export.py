"""Branches in the files of an export, and joined again by an import."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import zip_longest
from typing import Annotated, Any

from django.db.models import Q
from pydantic import BaseModel, Field

from chatsite.plugins import Seq
from chatsite.protocol.errors import CommandError
from chatsite.turns import commands
from memory import bundle, staging
from memory.models import Conversation, Message

from .models import Branch
from .services import join_branch

# As what is exported here is named by what is imported.
SOURCE = "windowpane:"
UUID = r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
# Messages that are compared.
AT_ONCE = 100


class PartingRow(BaseModel):
    """The fork of a branch: it has the messages of `parent` before message `seq`.

    `listed`: the list shows this branch for all that are shown as one conversation.
    """

    parent: Annotated[str, Field(pattern=UUID)]
    seq: Seq
    listed: bool = False


def read_parting(conversation: Conversation) -> list[dict[str, Any]]:
    """Return the one row of a branch, or an empty list.

    The first branch has none, and neither has one whose parent is gone.
    """
    if conversation.tree is None:
        return []
    rows = Branch.objects.filter(tree=conversation.tree).select_related("conversation")
    found = {row.pk: row for row in rows}
    own = next(
        (row for row in found.values() if row.conversation == conversation), None
    )
    row = own
    while row and row.parent_id:
        seq, row = row.seq, found[row.parent_id]
        if row.conversation and row.conversation.deleted_at is None:
            parent = str(row.conversation.uuid)
            return [{"parent": parent, "seq": seq, "listed": not own.is_folded}]
    return []


def write_parting(
    conversation: Conversation,
    messages: Mapping[int, Message],
    rows: Sequence[PartingRow],
    batch: bundle.Batch = bundle.at_once,
) -> None:
    """Join a conversation to the tree of its parent.

    The parent must have come before it and begin with the same messages. A file can say
    anything: otherwise the conversation stays alone.
    """
    for row in rows[:1]:
        parent = _find_original(conversation, row.parent)
        if parent and _parts_from(parent, messages, row.seq):
            # Branches beyond the limit stand alone.
            with suppress(CommandError), batch(0):
                if _is_still_there(parent):
                    commands.check_writable(parent)
                    join_branch(parent, conversation, row.seq)
                    _list_imported(conversation, row)


def _find_original(conversation: Conversation, uuid: str) -> Conversation | None:
    """Return the parent, imported with this conversation or before, or its original."""
    conversation.refresh_from_db(fields=["staged_by"])
    owned = Conversation.objects.filter(owner=conversation.owner_id)
    known = owned.exclude(pk=conversation.pk).filter(
        Q(imported_from=SOURCE + uuid) | Q(uuid=uuid), temporary_until=None
    )
    staged = staging.find_staged(conversation.staged_by or "")
    return known.filter(pk__in=staged).first() or known.filter(deleted_at=None).first()


def _parts_from(
    parent: Conversation, messages: Mapping[int, Message], seq: int
) -> bool:
    """Return whether a branch could begin at message `seq`.

    All messages before it must be the same in both, and it must be a user's message in
    both.
    """
    first = messages.get(seq)
    is_said = first is not None and first.role == Message.Role.USER
    if not is_said or not parent.messages.filter(seq=seq, role=first.role).exists():
        return False
    rows = parent.messages.filter(seq__lt=seq).order_by("seq")
    said = rows.values_list("seq", "role", "text").iterator(AT_ONCE)
    own = (messages[n] for n in sorted(messages) if n < seq)
    copies = ((row.seq, row.role, row.text) for row in own)
    return all(one == other for one, other in zip_longest(said, copies))


def _is_still_there(parent: Conversation) -> bool:
    """Lock the parent; return whether it was not deleted while both were compared."""
    rows = Conversation.objects.filter(pk=parent.pk, deleted_at=parent.deleted_at)
    return bool(rows.select_for_update().values_list("pk").first())


def _list_imported(conversation: Conversation, row: PartingRow) -> None:
    """Show this branch in the list, unless the list shows another of them already."""
    shown = Branch.objects.filter(tree=conversation.tree)
    if row.listed and not shown.filter(conversation__deleted_at=None).exists():
        shown.update(is_folded=True)
        shown.filter(conversation=conversation).update(is_folded=False)
