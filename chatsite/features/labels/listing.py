"""The list of conversations, narrowed to those with one label."""

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import JSONObject
from django.utils.translation import gettext_lazy as _

from chatsite.plugins import ListFilter
from memory.models import Conversation

from .models import Label
from .services import Link, list_labels

# All that labels have, for templates that show more of them one day.
COLUMNS = Label._meta.concrete_fields


def narrow_to_label(rows: QuerySet[Conversation], label: Any) -> QuerySet[Conversation]:
    return rows.filter(labels=label)


def find_choices(user: Any) -> QuerySet[Label]:
    choice = JSONObject(**{field.attname: field.attname for field in COLUMNS})
    return list_labels(user).order_by().annotate(choice=choice)


def describe_choices(
    choices: list[dict[str, Any]], chosen: int | None
) -> dict[str, Any]:
    """Return the labels by name, and the chosen one, for the templates."""
    labels = [Label(**choice) for choice in choices]
    return {
        "labels": sorted(labels, key=lambda label: label.key),
        "label": next((each for each in labels if each.pk == chosen), None),
        "label_pk": chosen,
        "label_max": Label.MAX_CHARS,
    }


def find_marks(
    rows: Sequence[Conversation], choices: list[dict[str, Any]], chosen: int | None
) -> dict[int, list[str]]:
    """Return the names of the labels of each conversation, in their order.

    The chosen label would be on every row, and is left out.
    """
    by_key = sorted(choices, key=lambda choice: choice["key"])
    names = {each["id"]: each["name"] for each in by_key if each["id"] != chosen}
    given = Link.objects.filter(conversation__in=[row.pk for row in rows])
    links = set(given.values_list("label_id", "conversation_id"))
    return {
        row.pk: [name for pk, name in names.items() if (pk, row.pk) in links]
        for row in rows
    }


LIST_FILTER = ListFilter(
    name="label",
    narrow=narrow_to_label,
    find_choices=find_choices,
    describe_choices=describe_choices,
    find_marks=find_marks,
    template="labels/_choices.html",
    nothing=_("No conversations have this label."),
)
