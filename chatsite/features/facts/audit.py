"""The invariants of the table of facts."""

from collections.abc import Iterator

from django.db.models import F, Q
from django.db.models.functions import Length

from memory.integrity.audit import Violation, report_rows
from memory.models import Message

from .models import Fact


def find_bad_facts() -> Iterator[Violation]:
    """Yield facts that are no part of a message of their user.

    Words of facts whose message is deleted are included.
    """
    foreign = ~Q(message__conversation=F("conversation"))
    foreign |= ~Q(conversation__owner=F("owner"))
    not_said = ~Q(message__role=Message.Role.USER)
    is_gone = Q(message__deleted_at__isnull=False)
    beyond = Q(end__gt=Length("message__text")) & ~is_gone
    left = is_gone & ~Q(text="")
    rows = Fact.objects.filter(foreign | not_said | beyond | left)
    words = "Fact {} ({}) is not part of a user's message"
    return report_rows(rows, "facts.place", words, "pk", "state")
