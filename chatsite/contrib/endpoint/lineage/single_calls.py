"""Single calls in the list of conversations.

Clients send them for titles, tags and the like, besides what users read. They are
folded into one line below the others.
"""

from typing import Any

from django.db.models import Count, Exists, OuterRef, QuerySet
from django.db.models.functions import JSONObject
from django.utils.translation import gettext_lazy as _

from chatsite.plugins import ListFilter
from memory import library
from memory.models import Conversation

from ..models import ClientConversation

SINGLE = ClientConversation.objects.filter(conversation=OuterRef("pk"), is_single=True)


def narrow_to_single(rows: QuerySet[Conversation], key: Any) -> QuerySet[Conversation]:
    return rows.filter(Exists(SINGLE))


def count_single(user: Any) -> QuerySet[Conversation]:
    """Return one row with the count of single calls, or none."""
    rows = narrow_to_single(library.list_conversations(user), 1).order_by()
    counted = rows.values("owner").annotate(count=Count("pk"))
    return counted.annotate(choice=JSONObject(count="count"))


def describe_fold(choices: list[dict[str, Any]], chosen: int | None) -> dict[str, Any]:
    return {
        "single_count": sum(choice["count"] for choice in choices),
        "single_shown": chosen,
    }


LIST_FILTER = ListFilter(
    name="single",
    narrow=narrow_to_single,
    find_choices=count_single,
    describe_choices=describe_fold,
    # No marks, as the rows name the client already.
    find_marks=lambda _rows, **_chosen: {},
    template="endpoint/_single_calls.html",
    nothing=_("There are no single calls."),
    unfold=lambda rows: rows.exclude(Exists(SINGLE)),
)
