"""The invariants of the table of feedback."""

from collections.abc import Iterator

from memory.integrity.audit import Violation, find_misplaced

from .models import Feedback


def find_misplaced_feedback() -> Iterator[Violation]:
    """Feedback on what is no reply of its conversation, or has lost its text."""
    return find_misplaced(Feedback, "R6.feedback", "feedback on")
