"""Rows of rules: written with the message that states them, read for a request.

What a person decides about them is in memory/actions.py. A conversation without rules
costs a request nothing: its row says that there are none.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from django.db.models import F, QuerySet, TextField, Value
from django.db.models.functions import Coalesce, NullIf, Substr

from memory import prompts
from memory.engine.compose import RuleBlock
from memory.engine.rules import detection
from memory.models import Conversation, Message, Rule

# Of one conversation. A person can't confirm more; of those that wait for an answer,
# or are kept by themselves, the oldest go.
MOST_CONFIRMED = 100
MOST_UNCONFIRMED = 100
# Of the list on the account page, with which every new conversation can begin.
MOST_OWN = 20
# Of those that were dismissed or replaced, so many are remembered.
MOST_PAST = 200

State = Rule.State
# What a request refers to a rule by: the number of its message and from where to where
# it is in the text; or the number, the hash of other words, and their date.
Ref = list[Any]


@dataclass(frozen=True, slots=True)
class StandingRule:
    """A rule in force: what is sent, and the reference to it."""

    pk: int
    block: RuleBlock
    ref: Ref
    is_confirmed: bool
    own_words: bool


@dataclass(frozen=True, slots=True)
class Heard:
    """What a text of a person states as rules, and what it takes back."""

    found: Sequence[detection.Found]
    taken_back: Sequence[str]


def hear(typed: str) -> Heard:
    """Read a text. No row is needed for it, so it can be done before any is locked."""
    return Heard(detection.find(typed), detection.find_cancellations(typed))


def note(message: Message, heard: Heard | None = None) -> None:
    """Keep the rules of a message of a person that was just stored; call it inside the
    transaction that stores it. By the policy they are offered, kept, or not looked for.
    `heard`: what the person has typed of it, if that was read before.
    """
    conversation = message.conversation
    mode = conversation.get_policy().rules
    if mode == "off":
        return
    # What a file says is not the person's wish.
    typed = message.typed
    heard = heard or hear(typed)
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
    # What is only offered replaces nothing before it is confirmed.
    later = said if mode == "keep" else []
    if conversation.rule_count:
        later += heard.taken_back
    replaced = later and replace_older(conversation, later, before=message.seq)
    if found or replaced:
        bound(conversation)


def begin_with(conversation: Conversation, texts: Iterable[str]) -> None:
    """Give a new conversation the rules of its owner's own list, confirmed."""
    rows = [
        Rule(conversation=conversation, text=text, state=State.CONFIRMED)
        for text in texts
    ]
    if rows:
        Rule.objects.bulk_create(rows[:MOST_OWN])
        bound(conversation)


def replace_older(
    conversation: Conversation,
    texts: Sequence[str],
    *,
    before: int,
    by: Rule | None = None,
) -> int:
    """Mark the rules of messages before number `before` that one of these later texts
    contradicts or cancels; how many they were. `by`: the rule that replaces them."""
    older = with_words(conversation.rules.filter(state__in=Rule.OPEN))
    older = older.filter(seq__lt=before).order_by("pk")
    rows = list(older.values_list("pk", "words"))
    words = [each or "" for _, each in rows]
    places = {n for text in texts for n in detection.find_replaced(text, words)}
    gone = Rule.objects.filter(pk__in=[rows[n][0] for n in places])
    return gone.update(state=State.REPLACED, replaced_by=by) if places else 0


def bound(conversation: Conversation) -> None:
    """Keep a conversation's rules few, and count those that matter. Call it after every
    change of them, in its transaction."""
    rows = conversation.rules.order_by("-pk")
    for states, most in (
        ((State.OFFERED, State.KEPT), MOST_UNCONFIRMED),
        ((State.DISMISSED, State.REPLACED), MOST_PAST),
    ):
        beyond = rows.filter(state__in=states).values_list("pk", flat=True)[most:]
        if old := list(beyond):
            Rule.objects.filter(pk__in=old).delete()
    count = rows.exclude(state=State.DISMISSED).count()
    Conversation.objects.filter(pk=conversation.pk).update(rule_count=count)
    conversation.rule_count = count


def forget(conversation: Conversation, seq: int) -> None:
    """Message `seq` is erased: so are its rules, in whatever words."""
    if conversation.rules.filter(message__seq=seq).delete()[0]:
        bound(conversation)
    prompts.release(conversation, _sent_for_deleted(conversation))


def _sent_for_deleted(conversation: Conversation) -> set[str]:
    """The hashes of other words for rules of deleted messages that requests were sent
    with, and that no request was sent for anything else. The rows of these rules may
    have been given new words since, or be gone."""
    calls = conversation.model_calls.order_by()
    if not calls.filter(refs__has_key="rules").exists():
        return set()
    deleted = conversation.messages.exclude(deleted_at=None)
    gone = set(deleted.values_list("seq", flat=True))
    erased: set[str] = set()
    needed: set[str] = set()
    for refs in calls.values_list("refs", flat=True).iterator():
        kept = [ref for ref in prompts.rules_in(refs) if ref[0] not in gone]
        rest = prompts.named_in(refs | {"rules": kept})
        needed.update(rest)
        erased.update(set(prompts.named_in(refs)) - set(rest))
    return erased - needed


def with_words(rows: QuerySet[Rule]) -> QuerySet[Rule]:
    """The rules with their `words`, the `seq` of their message and when it was
    written, without its whole text."""
    text = TextField()
    part = Substr(
        "message__text", F("start") + 1, F("end") - F("start"), output_field=text
    )
    return rows.annotate(
        words=Coalesce(NullIf("text", Value("", text)), part, output_field=text),
        seq=Coalesce("message__seq", 0),
        said_at=Coalesce("message__created_at", "created_at"),
    )


def standing(
    conversation: Conversation, *, before: int | None = None
) -> list[StandingRule]:
    """The rules in force of messages that the model may see, the oldest first; of those
    before number `before`."""
    if not conversation.rule_count:
        return []
    rows = with_words(conversation.rules.filter(state__in=Rule.IN_FORCE)).filter(
        message__excluded_at=None,
        message__superseded_at=None,
        message__deleted_at=None,
    )
    if before is not None:
        rows = rows.filter(seq__lt=before)
    rows = rows.order_by("seq", "start", "pk")[: MOST_CONFIRMED + MOST_UNCONFIRMED]
    values = rows.values(
        *("pk", "seq", "start", "end", "text", "words", "state"),
        *("said_at", "created_at"),
    )
    return list(map(_read, values))


def _read(row: Mapping[str, Any]) -> StandingRule:
    has_own = bool(row["text"])
    at = row["created_at" if has_own else "said_at"]
    block = RuleBlock(row["seq"], f"{at.astimezone(UTC):%Y-%m-%d}", row["words"])
    ref: Ref = [row["seq"], row["start"], row["end"]]
    if has_own:
        ref = [row["seq"], prompts.name_of(row["text"]), block.date]
    is_confirmed = row["state"] == State.CONFIRMED
    return StandingRule(row["pk"], block, ref, is_confirmed, has_own)


def rebuild(
    conversation: Conversation, refs: Iterable[Ref], texts: Mapping[str, str]
) -> Iterator[RuleBlock]:
    """The rules of a request from its references; `texts` by their hashes. One whose
    text is gone is "", so the hash of the whole differs."""
    refs = list(refs)
    rows = conversation.messages.filter(seq__in={seq for seq, *_ in refs})
    said = {
        seq: (text, f"{at.astimezone(UTC):%Y-%m-%d}")
        for seq, text, at in rows.values_list("seq", "text", "created_at")
    }
    for seq, first, last in refs:
        if isinstance(first, str):
            yield RuleBlock(seq, last, texts.get(first, ""))
        else:
            text, date = said[seq]
            yield RuleBlock(seq, date, text[first:last])
