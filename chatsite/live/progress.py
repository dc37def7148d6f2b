"""Where conversations stand, as far as a page has to show it: read for many at once,
and compared to find out what a socket has missed.
"""

from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import F, OuterRef, Subquery
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
    """Two queries, however many; conversations that are gone are missing."""
    turns = Turn.objects.filter(conversation_id__in=conversation_ids)
    unfinished: dict[int, list[tuple[int, str, int, int]]] = {}
    rows = turns.filter(state__in=Turn.UNFINISHED).order_by("pk")
    for conversation_id, *values in rows.values_list(
        "conversation_id", "pk", "state", "attempt", Length("text")
    ):
        unfinished.setdefault(conversation_id, []).append(tuple(values))
    newest = Turn.objects.filter(conversation=OuterRef("pk")).order_by("-pk")
    return {
        pk: Progress(latest, tuple(row), tuple(unfinished.get(pk, ())))
        for pk, latest, *row in Conversation.objects.filter(
            pk__in=conversation_ids, deleted_at=None
        )
        .annotate(latest=Coalesce(Subquery(newest.values("pk")[:1]), 0))
        .values_list("pk", "latest", F("next_seq"), F("memory_version"), F("title"))
    }
