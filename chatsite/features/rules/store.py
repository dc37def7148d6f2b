"""The rows of rules: written with the message that states them, read for a request.

The decisions of users about them are in services.py. A conversation without rules needs
no query: its row has their count.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Coalesce

from chatsite.features.statements.rows import WORDS, drop_oldest
from memory import prompts
from memory.engine.compose import RuleBlock
from memory.engine.rules import detection
from memory.models import Conversation, Message
from memory.rules.rule_source import RuleRef, RuleSource, StandingRule

from .models import Rule

# Limits of a conversation. A user can't confirm more; of those that wait for an answer,
# or are kept by themselves, the oldest go.
MOST_CONFIRMED = 100
MOST_UNCONFIRMED = 100
# Limit of the list on the account page, with which new conversations can begin.
MOST_OWN = 20
# The number of dismissed and replaced rules that are kept.
MOST_PAST = 200

State = Rule.State


@dataclass(frozen=True, slots=True)
class DetectedRules:
    """The rules that a user's text states, and those that it takes back."""

    found: Sequence[detection.RuleSpan]
    taken_back: Sequence[str]


def detect_rules(typed: str) -> DetectedRules:
    """Read a text. No row is needed for it, so it can be done before any is locked."""
    taken_back = detection.find_cancellations(typed)
    return DetectedRules(detection.find_rules(typed), taken_back)


def note_rules(message: Message, heard: DetectedRules | None = None) -> None:
    """Store the rules of a user's message that was just stored.

    Call it in the transaction that stores the message. By the policy they are offered,
    kept, or not looked for. Rules of the typed text that were detected before can be
    passed in.
    """
    conversation = message.conversation
    mode = conversation.get_policy().rules
    if mode == "off":
        return
    # The words of a file are not the user's wish.
    typed = message.typed
    heard = heard or detect_rules(typed)
    found = heard.found
    state = State.KEPT if mode == "keep" else State.OFFERED
    Rule.objects.bulk_create(
        Rule(
            conversation=conversation,
            message=message,
            start=each.start,
            end=each.end,
            kind=each.kind,
            state=state,
        )
        for each in found
    )
    said = [typed[each.start : each.end] for each in found]
    # An offered rule replaces nothing before it is confirmed.
    later = said if mode == "keep" else []
    if conversation.rule_count:
        later += heard.taken_back
    replaced = later and replace_older_rules(conversation, later, before=message.seq)
    if found or replaced:
        bound_rules(conversation)


def begin_with_rules(conversation: Conversation, texts: Iterable[str]) -> None:
    """Give a new conversation the rules of its owner's own list, confirmed."""
    rows = [
        Rule(conversation=conversation, text=text, state=State.CONFIRMED)
        for text in texts
    ]
    if rows:
        Rule.objects.bulk_create(rows[:MOST_OWN])
        bound_rules(conversation)


def replace_older_rules(
    conversation: Conversation,
    texts: Sequence[str],
    *,
    before: int,
    by: Rule | None = None,
) -> int:
    """Mark the earlier rules that one of these later texts contradicts or cancels.

    They are the rules of messages before number `before`; return their number. `by`:
    the rule that replaces them.
    """
    older = with_rule_words(conversation.rules.filter(state__in=Rule.OPEN))
    older = older.filter(seq__lt=before).order_by("pk")
    rows = list(older.values_list("pk", "words"))
    words = [each or "" for _, each in rows]
    places = {n for text in texts for n in detection.find_replaced(text, words)}
    gone = Rule.objects.filter(pk__in=[rows[n][0] for n in places])
    return gone.update(state=State.REPLACED, replaced_by=by) if places else 0


def bound_rules(conversation: Conversation) -> None:
    """Drop a conversation's oldest rules beyond the limits, and count the rest.

    Call it after every change of them, in its transaction.
    """
    rows = conversation.rules.all()
    drop_oldest(
        rows,
        ((State.OFFERED, State.KEPT), MOST_UNCONFIRMED),
        ((State.DISMISSED, State.REPLACED), MOST_PAST),
    )
    count = rows.exclude(state=State.DISMISSED).count()
    Conversation.objects.filter(pk=conversation.pk).update(rule_count=count)
    conversation.rule_count = count


def forget_rules(conversation: Conversation, seq: int, **_: object) -> None:
    """Message `seq` is erased: so are its rules, in whatever words."""
    if conversation.rules.filter(message__seq=seq).delete()[0]:
        bound_rules(conversation)


def with_rule_words(rows: QuerySet[Rule]) -> QuerySet[Rule]:
    """Add the `words` of rules, the `seq` of their message and its time.

    The whole text of the message is not loaded.
    """
    return rows.annotate(
        words=WORDS,
        seq=Coalesce("message__seq", 0),
        said_at=Coalesce("message__created_at", "created_at"),
    )


def list_standing_rules(
    conversation: Conversation, before: int | None = None
) -> list[StandingRule]:
    """Return the rules in force of messages that the model may see, the oldest first.

    Only rules of messages before number `before` count, if it is given.
    """
    if not conversation.rule_count:
        return []
    rows = with_rule_words(conversation.rules.filter(state__in=Rule.IN_FORCE)).filter(
        message__excluded_at=None, message__superseded_at=None, message__deleted_at=None
    )
    if before is not None:
        rows = rows.filter(seq__lt=before)
    rows = rows.order_by("seq", "start", "pk")[: MOST_CONFIRMED + MOST_UNCONFIRMED]
    values = rows.values(
        *("pk", "seq", "start", "end", "text", "words", "state"),
        *("said_at", "created_at"),
    )
    return list(map(_make_standing, values))


def _make_standing(row: Mapping[str, Any]) -> StandingRule:
    has_own = bool(row["text"])
    at = row["created_at" if has_own else "said_at"]
    block = RuleBlock(row["seq"], f"{at.astimezone(UTC):%Y-%m-%d}", row["words"])
    ref: RuleRef = [row["seq"], row["start"], row["end"]]
    if has_own:
        ref = [row["seq"], prompts.hash_text(row["text"]), block.date]
    is_confirmed = row["state"] == State.CONFIRMED
    return StandingRule(row["pk"], block, ref, is_confirmed, has_own)


class StatedRules(RuleSource):
    """The rules of the table, in the place where the memory asks for them."""

    detect_rules = staticmethod(detect_rules)
    store_rules = staticmethod(note_rules)
    add_own_rules = staticmethod(begin_with_rules)
    list_standing = staticmethod(list_standing_rules)
