"""The list of conversations, narrowed to those with one label."""

from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import JSONObject
from django.utils.translation import gettext_lazy as _

from chatsite.hooks import ListFilter
from memory.models import Conversation

from .models import Label
from .services import list_labels

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
    """The labels by name, and the one that the list shows, for the templates."""
    labels = [Label(**choice) for choice in choices]
    return {
        "labels": sorted(labels, key=lambda label: label.key),
        "label": next((each for each in labels if each.pk == chosen), None),
        "label_pk": chosen,
        "label_max": Label.MAX_CHARS,
    }


LIST_FILTER = ListFilter(
    name="label",
    narrow=narrow_to_label,
    find_choices=find_choices,
    describe_choices=describe_choices,
    template="labels/_choices.html",
    nothing=_("No conversations have this label."),
)
