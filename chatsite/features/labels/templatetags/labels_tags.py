"""The template tags of labels."""

from django import template

from memory.models import Conversation

from ..models import Label
from ..services import list_labels

register = template.Library()


@register.simple_tag
def labels_for(conversation: Conversation) -> list[tuple[Label, bool]]:
    """Return the labels of the owner, and whether the conversation has each."""
    given = set(conversation.labels.values_list("pk", flat=True))
    return [(label, label.pk in given) for label in list_labels(conversation.owner_id)]


@register.simple_tag
def label_max() -> int:
    """Return the number of characters of the longest name."""
    return Label.MAX_CHARS
