"""The part of the queue in the inspector of a request."""

from django.template.loader import render_to_string

from chatsite import plugins
from memory.models import Conversation

from .models import QueueItem


def draw_inspected(conversation: Conversation, seq: int) -> str:
    """Return the items about reply `seq`, for staff."""
    kinds = set(plugins.sources[plugins.ReviewSource]) - {"summary"}
    items = conversation.queue_items.filter(kind__in=kinds, number=seq)
    items = items.defer(*QueueItem.TEXTS).select_related("assignee")
    if not (rows := list(items)):
        return ""
    return render_to_string("review_queue/_inspected.html", {"items": rows})
