"""The map of a conversation's branches, as plain values for its template."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import OuterRef, Subquery
from django.db.models.functions import Substr

from memory.models import Conversation, Message

from .forks import Node, list_depths
from .models import Branch

EXCERPT = 160


@dataclass(frozen=True, slots=True)
class MapRow:
    """A branch, and how the nested list goes on with it."""

    uuid: str
    seq: int
    excerpt: str
    used_at: datetime | None
    is_shown: bool
    # It was deleted, but others part from it.
    is_gone: bool
    is_only: bool
    opens: bool
    # The number of levels that end after it.
    closes: range


def draw_map(conversation: Conversation) -> list[MapRow]:
    """Return all branches, each with the beginning of its first own message.

    This takes one statement.
    """
    said = Message.objects.filter(
        conversation=OuterRef("conversation"), role=Message.Role.USER, deleted_at=None
    )
    own = said.filter(seq__gte=OuterRef("seq")).order_by("seq")
    rows = Branch.objects.filter(tree=conversation.tree).annotate(
        excerpt=Subquery(own.values(cut=Substr("text", 1, EXCERPT))[:1])
    )
    rows = rows.select_related("conversation").defer("conversation__system_prompt")
    found = {row.pk: row for row in rows}
    nodes = [Node(row.pk, row.parent_id, row.seq) for row in found.values()]
    places = list_depths(nodes)
    after = [*(depth for _pk, depth in places[1:]), 0]
    is_only = len([row for row in found.values() if _is_there(row)]) < 2
    return [
        _make_row(found[pk], depth, following, conversation, is_only=is_only)
        for (pk, depth), following in zip(places, after, strict=True)
    ]


def _is_there(row: Branch) -> bool:
    return row.conversation is not None and row.conversation.deleted_at is None


def _make_row(
    row: Branch, depth: int, after: int, shown: Conversation, *, is_only: bool
) -> MapRow:
    """`after`: the depth of the row that follows."""
    is_there = _is_there(row)
    return MapRow(
        uuid=str(row.conversation.uuid) if is_there else "",
        seq=row.seq,
        excerpt=" ".join((row.excerpt or "").split()) if is_there else "",
        used_at=row.conversation.updated_at if is_there else None,
        is_shown=row.conversation_id == shown.pk,
        is_gone=not is_there,
        is_only=is_only,
        opens=after > depth,
        closes=range(max(0, depth - after)),
    )
