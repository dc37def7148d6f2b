"""Audit rules of the table of examples."""

from collections.abc import Iterator

from memory.integrity.audit import Violation, find_misplaced

from .models import Example


def find_misplaced_examples() -> Iterator[Violation]:
    """Yield examples that are no reply of their conversation, or have lost its text."""
    return find_misplaced(Example, "R6.examples", "example of")
