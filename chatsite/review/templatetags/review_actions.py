"""What the template of the acts shows: how far the conversation is, who reviewed it."""

from typing import Any

from django import template

from memory.models import Conversation, Summary

from ..actions.forms import RebuildForm, ReviewForm
from ..actions.reviewing import State, is_outdated
from ..rights import rights_of

register = template.Library()
register.simple_tag(rights_of, name="rights_of")


@register.simple_tag
def acts_of(
    conversation: Conversation, version: Summary | int | None = None
) -> dict[str, Any]:
    """`version` is one that may come back into force: a summary, or its number."""
    state = State.of(conversation)
    review = conversation.reviews.first()
    if isinstance(version, int):
        version = conversation.summaries.filter(version=version).first()
    is_old = bool(version) and version.status == Summary.Status.SUPERSEDED
    return {
        "seen": state,
        "review": review,
        "is_outdated": bool(review) and is_outdated(review, state),
        "restorable": version if is_old else None,
        "rebuild_form": RebuildForm(auto_id="rebuild_%s"),
        "review_form": ReviewForm(auto_id="review_%s"),
    }
