"""The invariants of the table of rules."""

from collections.abc import Iterator

from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Length

from memory.integrity.audit import Violation, report_rows
from memory.models import Conversation, Message
from memory.view import rebuilding

from .models import Rule


def find_bad_rules() -> Iterator[Violation]:
    """Yield rules that are not a part of an existing message of a user."""
    foreign = ~Q(message__conversation=F("conversation"))
    not_said = ~Q(message__role=Message.Role.USER) | Q(
        message__deleted_at__isnull=False
    )
    beyond = Q(start__gte=F("end")) | Q(end__gt=Length("message__text"))
    rows = Rule.objects.filter(foreign | not_said | beyond, message__isnull=False)
    words = "Rule {} ({}) is not part of a user's message"
    return report_rows(rows, "rules.place", words, "pk", "state")


def find_missing_rules() -> Iterator[Violation]:
    """Yield confirmed rules that the next request would not have, word for word."""
    confirmed = Rule.objects.filter(
        conversation=OuterRef("pk"), state=Rule.State.CONFIRMED
    )
    rows = Conversation.objects.filter(Exists(confirmed)).order_by("pk")
    for conversation in rows.iterator(chunk_size=500):
        if not conversation.rule_count:
            detail = "has confirmed rules and counts none"
            yield Violation("rules.count", conversation.pk, detail)
        elif missing := rebuilding.missing_rules(conversation):
            detail = f"the next request has no rules of messages {missing}"
            yield Violation("rules.missing", conversation.pk, detail)
