"""The progress of conversations, as far as a page has to show it.

It is read for many conversations at once, and compared to detect missed events.
"""

from collections.abc import Collection
from typing import Any

from django.db.models import FilteredRelation, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, Length

from chatsite.turns.models import Turn
from memory.models import Conversation
from memory.sql import prepared_rows

# Conversation, its newest turn (0 = none), its next message number, the version of its
# memory, its title; a turn that is not finished: id, state, attempt, characters saved.
Row = tuple[int, int, int, int, str, int | None, str | None, int | None, int | None]


class ConversationProgress(tuple[Row, ...]):
    """The rows of one conversation: one per unfinished turn, or one without any.

    They are kept as they were read, so that comparing two is a comparison of tuples.
    """

    __slots__ = ()

    @property
    def latest(self) -> int:
        return self[0][1]

    @property
    def unfinished(self) -> tuple[Row, ...]:
        return tuple(row for row in self if row[5] is not None)


def read_progress(conversation_ids: Collection[int]) -> dict[int, ConversationProgress]:
    """Return the progress of each conversation that is not gone, in one query."""
    found: dict[int, list[Row]] = {}
    for row in _select_progress(conversation_ids=conversation_ids):
        found.setdefault(row[0], []).append(row)
    return {pk: ConversationProgress(rows) for pk, rows in found.items()}


@prepared_rows()
def _select_progress(conversation_ids: Any) -> QuerySet[Conversation, Row]:
    newest = Turn.objects.filter(conversation=OuterRef("pk")).order_by("-pk")
    is_open = Q(turns__state__one_of=Turn.UNFINISHED)
    rows = Conversation.objects.filter(pk__among=conversation_ids, deleted_at=None)
    rows = rows.annotate(
        latest=Coalesce(Subquery(newest.values("pk")[:1]), 0),
        open=FilteredRelation("turns", condition=is_open),
    )
    turn = ("open__pk", "open__state", "open__attempt", Length("open__text"))
    place = ("pk", "latest", "next_seq", "memory_version", "title")
    return rows.order_by("pk", "open__pk").values_list(*place, *turn)
