"""The invariants of the table of feedback."""

from collections.abc import Iterator

from django.db.models import F, Q

from memory.integrity.audit import Violation
from memory.models import Message

from .models import Feedback


def find_misplaced_feedback() -> Iterator[Violation]:
    """Feedback on what is no reply of its conversation, or has lost its text."""
    is_right = Q(
        message__conversation=F("conversation"),
        message__role=Message.Role.ASSISTANT,
        message__deleted_at=None,
    )
    rows = Feedback.objects.exclude(is_right).order_by("pk")
    for pk, seq in rows.values_list("conversation_id", "message__seq"):
        yield Violation("R6.feedback", pk, f"feedback on message #{seq}, no reply")
