"""Where conversations stand, as far as a page has to show it: read for many at once,
and compared to find out what a socket has missed.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from django.db.models import FilteredRelation, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce, Length

from chatsite.turns.models import Turn
from memory.models import Conversation


@dataclass(frozen=True, slots=True)
class Progress:
    latest: int  # id of the newest turn; 0 = none
    # What the conversation's row says: its numbers, its memory, its name.
    row: tuple[int, int, str]
    # Of each turn that is not finished: id, state, attempt, characters saved.
    unfinished: tuple[tuple[int, str, int, int], ...] = ()


def read(conversation_ids: Collection[int]) -> dict[int, Progress]:
    """One query, however many; conversations that are gone are missing."""
    newest = Turn.objects.filter(conversation=OuterRef("pk")).order_by("-pk")
    is_open = Q(turns__state__in=Turn.UNFINISHED)
    rows = Conversation.objects.filter(pk__in=conversation_ids, deleted_at=None)
    rows = rows.annotate(
        latest=Coalesce(Subquery(newest.values("pk")[:1]), 0),
        open=FilteredRelation("turns", condition=is_open),
    )
    turn = ("open__pk", "open__state", "open__attempt", Length("open__text"))
    found: dict[int, Progress] = {}
    for pk, latest, *values in rows.order_by("pk", "open__pk").values_list(
        "pk", "latest", "next_seq", "memory_version", "title", *turn
    ):
        row, unfinished = tuple(values[:3]), tuple(values[3:])
        seen = found.setdefault(pk, Progress(latest, row))
        if unfinished[0] is not None:
            found[pk] = replace(seen, unfinished=(*seen.unfinished, unfinished))
    return found
