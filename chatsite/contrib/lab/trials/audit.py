"""The rules that the table of trials must always satisfy."""

from collections.abc import Iterator

from django.db.models import F, Q

from memory.integrity.audit import Violation, report_rows

from .models import Trial


def find_misplaced_trials() -> Iterator[Violation]:
    """Trials of another conversation's reply, or with the request of another one."""
    is_right = Q(message__conversation=F("conversation")) & (
        Q(call=None) | Q(call__conversation=F("conversation"))
    )
    words = "trial {} has rows of another conversation"
    return report_rows(Trial.objects.exclude(is_right), "R6.trial", words, "pk")
