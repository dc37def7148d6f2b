"""The rules that the table of trials must always satisfy."""

from collections.abc import Iterator

from django.db.models import F, Q

from memory.integrity.audit import Violation

from .models import Trial


def find_misplaced_trials() -> Iterator[Violation]:
    """Trials of another conversation's reply, or with the request of another one."""
    is_right = Q(message__conversation=F("conversation")) & (
        Q(call=None) | Q(call__conversation=F("conversation"))
    )
    for trial in Trial.objects.exclude(is_right).order_by("pk"):
        detail = f"trial {trial.pk} has rows of another conversation"
        yield Violation("R6.trial", trial.conversation_id, detail)
