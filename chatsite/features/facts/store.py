"""The rows of facts: written with the message that states them, read for a request.

The decisions of users about them are in services.py. If the policy of a conversation
neither uses nor learns facts, no query is made.
"""

from collections.abc import Mapping
from datetime import UTC
from typing import Any

from django.db.models import BooleanField, Case, F, Q, QuerySet, When
from django.db.models.functions import Coalesce

from chatsite.features.statements.rows import WORDS, drop_oldest
from memory import prompts
from memory.engine.compose import RuleBlock
from memory.engine.facts import detection
from memory.models import Conversation, Message, Prompt
from memory.rules.rule_source import RuleSource, StandingRule, name_fact

from .models import Fact

# Limits of one user. No more can be kept; of those that wait for an answer, or of those
# that were dismissed or replaced, the oldest go.
MOST_KEPT = 100
MOST_OFFERED = 100
MOST_PAST = 200

State = Fact.State
# Its source exists, as the user has left it.
HAS_SOURCE = Q(
    message__excluded_at=None,
    message__superseded_at=None,
    message__deleted_at=None,
    conversation__deleted_at=None,
)


def facts_of(owner_id: int) -> QuerySet[Fact]:
    """Return the facts of a user with their `words` and the place of their message.

    The place is the `seq` of the message, the `uuid` of its conversation, its time
    `said_at`, and whether it `is_source`.
    """
    return Fact.objects.filter(owner=owner_id).annotate(
        words=WORDS,
        seq=F("message__seq"),
        uuid=F("conversation__uuid"),
        said_at=Coalesce("worded_at", "message__created_at"),
        is_source=Case(
            When(HAS_SOURCE, then=True), default=False, output_field=BooleanField()
        ),
    )


def note_facts(message: Message, heard: Any = None) -> None:
    """Offer the facts of a user's message that was just stored.

    Call it in the transaction that stores the message.
    """
    conversation = message.conversation
    if conversation.is_temporary or not conversation.get_policy().learns_facts:
        return
    # The words of a file are not those of the user.
    typed = message.typed
    if not (found := detection.find_facts(typed)):
        return
    # Neither is what waits for an answer, nor what was kept or refused, asked again.
    rows = facts_of(conversation.owner_id)
    rows = rows.filter(Q(is_source=True) | Q(state=State.DISMISSED))
    known = {words.casefold() for words in rows.values_list("words", flat=True)}
    Fact.objects.bulk_create(
        Fact(
            owner_id=conversation.owner_id,
            conversation=conversation,
            message=message,
            start=each.start,
            end=each.end,
            state=State.OFFERED,
        )
        for each in found
        if typed[each.start : each.end].casefold() not in known
    )
    bound_facts(conversation.owner_id)


def bound_facts(owner_id: int) -> None:
    """Drop a user's oldest facts beyond the limits."""
    drop_oldest(
        Fact.objects.filter(owner=owner_id),
        ((State.OFFERED,), MOST_OFFERED),
        ((State.DISMISSED, State.REPLACED), MOST_PAST),
    )


def list_standing_facts(
    conversation: Conversation, before: int | None = None
) -> list[StandingRule]:
    """Return the facts that the user kept here, or in others for all; oldest first."""
    policy = conversation.get_policy()
    if conversation.is_temporary or policy.facts == "off":
        return []
    wanted = Q(state=State.HERE, conversation=conversation)
    if policy.uses_facts:
        wanted |= Q(state=State.KEPT) & ~Q(conversation=conversation)
    rows = facts_of(conversation.owner_id).filter(wanted, is_source=True)
    rows = rows.order_by("said_at", "pk")
    values = rows.values("pk", "words", "said_at", "uuid", "seq")
    return list(map(_make_standing_fact, values))


def _make_standing_fact(row: Mapping[str, Any]) -> StandingRule:
    block = block_of(row["words"], row["said_at"])
    ref = [f"{row['uuid']}#{row['seq']}", hash_of(block)]
    return StandingRule(row["pk"], block, ref, is_confirmed=False, own_words=False)


def block_of(words: str, said_at: Any) -> RuleBlock:
    return RuleBlock(0, f"{said_at.astimezone(UTC):%Y-%m-%d}", words)


def hash_of(block: RuleBlock) -> str:
    return prompts.hash_text(name_fact(block))


def forget_facts(conversation: Conversation, seq: int, **_: object) -> None:
    """Erase the words of the facts of the erased message `seq`, in every form.

    Kept facts stay as a line, so that their user sees that they are gone.
    """
    rows = Fact.objects.filter(conversation=conversation, message__seq=seq)
    rows.exclude(state=State.KEPT).delete()
    for fact in rows:
        forget_sent(fact)
        fact.text, fact.names = "", []
        fact.save(update_fields=["text", "names"])


def forget_sent(instance: Fact, **_: object) -> None:
    """Erase the words of a fact from the requests that were sent with it.

    These requests can't be rebuilt any more, as after a message of them is deleted.
    """
    if not instance.names:
        return
    links = Prompt.conversations.through.objects.filter(
        prompt__in=instance.names, conversation__owner=instance.owner_id
    )
    links.delete()
    prompts.drop_unused(sorted(instance.names))


class StatedFacts(RuleSource):
    """The facts of the table, in the place where the memory asks for them."""

    store_rules = staticmethod(note_facts)
    list_standing = staticmethod(list_standing_facts)
