"""Audit rules of the table of examples."""

from collections.abc import Iterator

from django.db.models import F, Q

from memory.integrity.audit import Violation
from memory.models import Message

from .models import Example


def find_misplaced_examples() -> Iterator[Violation]:
    """Yield examples that are no reply of their conversation, or have lost its text."""
    is_right = Q(
        message__conversation=F("conversation"),
        message__role=Message.Role.ASSISTANT,
        message__deleted_at=None,
    )
    rows = Example.objects.exclude(is_right).order_by("pk")
    for pk, seq in rows.values_list("conversation_id", "message__seq"):
        yield Violation("R6.examples", pk, f"example of message #{seq}, no reply")
