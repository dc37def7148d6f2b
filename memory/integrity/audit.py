"""The audit of the memory: the invariants of its tables."""

import hmac
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from django.db.models import Count, Exists, F, Max, Min, Model, OuterRef, Q, QuerySet

from memory.models import Conversation, Message, ModelCall, Summary
from memory.view import rebuilding


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken invariant: `code` names the rule and the case, such as "R6.gap"."""

    code: str
    conversation_id: int
    detail: str

    def __str__(self) -> str:
        return f"{self.code} conversation={self.conversation_id} {self.detail}"


Finder = Callable[[], Iterator[Violation]]
Status = Summary.Status


def report_rows(
    rows: QuerySet[Any], code: str, words: str, *names: str
) -> Iterator[Violation]:
    """Yield a violation for each row; `words` have a {} for each of these columns."""
    for pk, *values in rows.order_by("pk").values_list("conversation_id", *names):
        yield Violation(code, pk, words.format(*values))


def without_staged(violations: Iterator[Violation]) -> Iterator[Violation]:
    """Yield the violations of conversations that are not imported or erased now."""
    for violation in violations:
        rows = Conversation.objects.filter(pk=violation.conversation_id)
        if not rows.filter(staged_by__isnull=False).exists():
            yield violation


# The most broken rows that are named for a conversation.
NAMED = 10
# The code, the model, its signature and label fields, and the words for a row.
SIGNED = (
    ("signature.message", Message, "signature", "seq", "message #{}"),
    ("signature.summary", Summary, "signature", "version", "v{}"),
    ("signature.status", Summary, "status_signature", "version", "the status of v{}"),
    ("signature.call", ModelCall, "signature", "pk", "call {}"),
)


def find_broken_signatures() -> Iterator[Violation]:
    """Find rows that are not as the site wrote them.

    Messages, summaries, their status, and requests; one violation for each kind and
    conversation.
    """
    for code, model, name, label, words in SIGNED:
        field = model._meta.get_field(name)
        rows = model.objects.order_by("conversation_id", "pk")
        values = rows.values_list("conversation_id", label, name, *field.columns)
        broken = (
            (pk, words.format(label))
            for pk, label, signature, *held in values.iterator(chunk_size=2000)
            if not hmac.compare_digest(signature or "", field.digest_values(held))
        )
        for pk, found in groupby(broken, key=itemgetter(0)):
            labels = [label for _, label in found]
            more = f" and {len(labels) - NAMED:,} more" if len(labels) > NAMED else ""
            detail = f"not as it was written: {', '.join(labels[:NAMED])}{more}"
            if Conversation.objects.filter(pk=pk).exists():
                yield Violation(code, pk, detail)


def find_missing_versions() -> Iterator[Violation]:
    """Find gaps in the numbers of versions.

    A version gets the number after the newest, so none can be missing, except for those
    that a branch or an import left out.
    """
    before = Summary.objects.filter(
        conversation=OuterRef("conversation"), version=OuterRef("version") - 1
    )
    rows = Summary.objects.filter(
        ~Exists(before), version__gt=1, created_at__gte=F("conversation__created_at")
    )
    return report_rows(rows, "R7.missing", "there is no version before v{}", "version")


def check_memory(*, hashes: bool = True) -> Iterator[Violation]:
    """Yield every violation in the memory tables.

    `hashes` checks the signature of every row, and rebuilds the context of every
    recorded reply, which takes some milliseconds for each; the rest is a few queries.
    """
    for find in (*FINDERS, *(HASHING if hashes else ())):
        yield from without_staged(find())


def find_duplicates() -> Iterator[Violation]:
    """Find rows that break a unique constraint, if the database has lost it."""
    for code, model, field in (
        ("R2.client_id", Message, "client_id"),
        ("R6.seq", Message, "seq"),
        ("R6.version", Summary, "version"),
    ):
        rows = model.objects.exclude(**{field: None}).order_by()
        groups = rows.values("conversation_id", field).annotate(count=Count("pk"))
        for group in groups.filter(count__gt=1):
            detail = f"{group['count']} rows have the {field} {group[field]!r}"
            yield Violation(code, group["conversation_id"], detail)


def find_unreserved_numbers() -> Iterator[Violation]:
    rows = Message.objects.filter(seq__gte=F("conversation__next_seq"))
    words = "message #{} has a number not given out"
    return report_rows(rows, "R6.number", words, "seq")


def find_bad_policies() -> Iterator[Violation]:
    for conversation in Conversation.objects.exclude(policy={}).iterator():
        if error := conversation.policy_error:
            yield Violation("policy", conversation.pk, error)


def find_broken_tiling() -> Iterator[Violation]:
    rows = Summary.objects.filter(status=Status.ACTIVE)
    ranges = rows.order_by("conversation_id", "first_seq", "version").values_list(
        "conversation_id", "version", "first_seq", "last_seq"
    )
    for pk, group in groupby(ranges.iterator(), key=itemgetter(0)):
        free = 1
        for _, version, first, last in group:
            if first > free:
                detail = f"#{free} to #{first - 1} is left out before v{version}"
                yield Violation("R6.gap", pk, detail)
            elif first < free:
                detail = f"v{version} covers #{first} to #{free - 1} a second time"
                yield Violation("R6.overlap", pk, detail)
            free = max(free, last + 1)


def find_covering_nothing() -> Iterator[Violation]:
    """Find summaries of numbers that no message has yet."""
    rows = Summary.objects.filter(
        status=Status.ACTIVE, last_seq__gte=F("conversation__next_seq")
    )
    for summary in rows.order_by("pk"):
        detail = f"reaches beyond the newest message: {summary}"
        yield Violation("R6.range", summary.conversation_id, detail)


def find_lost_messages() -> Iterator[Violation]:
    """Find visible messages that are neither in a summary nor in the window."""
    active = Summary.objects.filter(
        conversation=OuterRef("conversation"), status=Status.ACTIVE
    )
    covering = active.filter(first_seq__lte=OuterRef("seq")).filter(
        last_seq__gte=OuterRef("seq")
    )
    before_window = Exists(active.filter(last_seq__gte=OuterRef("seq")))
    lost = Message.objects.filter(
        before_window,
        ~Exists(covering),
        excluded_at=None,
        superseded_at=None,
        deleted_at=None,
    )
    groups = lost.order_by().values("conversation_id")
    for row in groups.annotate(count=Count("pk"), first=Min("seq"), last=Max("seq")):
        yield Violation(
            "R6.lost",
            row["conversation_id"],
            f"{row['count']} messages between #{row['first']} and #{row['last']} are "
            "in no summary and not in the window",
        )


def find_bad_index() -> Iterator[Violation]:
    """Find messages missing from the index, and deleted words still in it."""
    words = Q(recall_entry__isnull=False) & ~Q(recall_entry__terms="")
    wrong = Q(recall_entry=None) | Q(words, deleted_at__isnull=False)
    rows = Message.objects.filter(wrong).order_by("pk")
    for pk, seq, deleted_at in rows.values_list("conversation_id", "seq", "deleted_at"):
        detail = "still has words of deleted" if deleted_at else "does not have"
        yield Violation("recall-index", pk, f"the index {detail} message #{seq}")


def find_bad_summaries() -> Iterator[Violation]:
    """Find texts that are no summaries, and summaries of unknown origin."""
    used = Q(status__in=(Status.ACTIVE, Status.SUPERSEDED))
    failed = Q(status__in=(Status.FAILED, Status.REJECTED))
    unknown = ~Q(status__in=Status.values)
    # Messages that only left the window have a version without text and model.
    trimmed = Q(text="", model="")
    for condition, code, words in (
        (used & Q(text="") & ~trimmed, "R7.empty", "has no text"),
        (used & ~Q(error=""), "R7.error", "was made by a failure"),
        (failed & ~Q(text=""), "R7.failed", "failed, yet has a text"),
        (unknown, "R7.status", "has an unknown status"),
    ):
        for summary in Summary.objects.filter(condition).order_by("pk"):
            yield Violation(code, summary.conversation_id, f"{summary} {words}")
    # A restored version repeats the text of an older one without a request.
    answered = ModelCall.objects.filter(summary=OuterRef("pk"), error="")
    unread = Q(status=Status.ACTIVE, author=None) & ~Exists(answered)
    restored = Q(trigger__kind="restore")
    rows = Summary.objects.filter(unread).exclude(restored).exclude(trimmed)
    for summary in rows.order_by("pk"):
        detail = f"no answered model call made {summary}"
        yield Violation("R7.call", summary.conversation_id, detail)


def find_bad_ancestors() -> Iterator[Violation]:
    """Find versions with sources that are later, foreign or out of range."""
    links = Summary.folded_from.through.objects.select_related(
        "from_summary", "to_summary"
    )
    wrong = (
        ~Q(to_summary__conversation=F("from_summary__conversation"))
        | Q(to_summary__version__gte=F("from_summary__version"))
        | Q(to_summary__first_seq__lt=F("from_summary__first_seq"))
        | Q(to_summary__last_seq__gt=F("from_summary__last_seq"))
    )
    for link in links.filter(wrong).order_by("pk"):
        made, source = link.from_summary, link.to_summary
        other = source.conversation_id
        detail = f"{made} cannot be made of {source} of conversation {other}"
        yield Violation("R7.ancestor", made.conversation_id, detail)


def find_unexplained_replies() -> Iterator[Violation]:
    """Find replies without a recorded request.

    For these the page can't show what the model saw. Imported replies have none.
    """
    calls = ModelCall.objects.filter(
        message=OuterRef("pk"), purpose=ModelCall.Purpose.REPLY
    )
    rows = Message.objects.filter(
        ~Exists(calls), role=Message.Role.ASSISTANT, imported_at=None
    )
    return report_rows(rows, "R8.call", "reply #{} has no recorded request", "seq")


def find_uneven_parts() -> Iterator[Violation]:
    """Find requests whose parts do not sum to their tokens."""
    rows = ModelCall.objects.exclude(parts=[]).order_by("pk")
    values = rows.values_list("conversation_id", "pk", "parts", "tokens_estimated")
    for conversation, pk, parts, tokens in values.iterator():
        if (total := sum(count for _name, count in parts)) != tokens:
            detail = f"the parts of call {pk} have {total} of its {tokens} tokens"
            yield Violation("R8.parts", conversation, detail)


def find_foreign_calls() -> Iterator[Violation]:
    foreign = (
        Q(message__isnull=False) & ~Q(message__conversation=F("conversation"))
    ) | (Q(summary__isnull=False) & ~Q(summary__conversation=F("conversation")))
    words = "call {} belongs to something in another conversation"
    return report_rows(ModelCall.objects.filter(foreign), "R8.foreign", words, "pk")


def count_unknown_requests() -> int:
    """Return how many requests only an app that is off could rebuild."""
    return rebuilding.select_unknown(ModelCall.objects.all()).count()


def find_misplaced(model: type[Model], code: str, what: str) -> Iterator[Violation]:
    """Find rows whose message is no reply of their conversation, or has lost its text.

    `what`: a row of this table, such as "feedback on".
    """
    is_right = Q(
        message__conversation=F("conversation"),
        message__role=Message.Role.ASSISTANT,
        message__deleted_at=None,
    )
    words = f"{what} message #{{}}, no reply"
    return report_rows(model.objects.exclude(is_right), code, words, "message__seq")


def find_changed_contexts() -> Iterator[Violation]:
    """Find requests that can't be rebuilt from their references as they were sent."""
    rows = ModelCall.objects.filter(purpose__in=ModelCall.COMPOSED)
    known = rebuilding.select_known(rows)
    calls = known.select_related("conversation").order_by("pk")
    for call in calls.iterator(chunk_size=500):
        try:
            same = rebuilding.verify_context(call) or rebuilding.is_erased(call)
        except (LookupError, TypeError, ValueError) as error:
            detail = f"call {call.pk} has broken references: {type(error).__name__}"
            yield Violation("R8.refs", call.conversation_id, detail)
            continue
        # If the conversation was deleted meanwhile, its messages went first.
        if not same and ModelCall.objects.filter(pk=call.pk).exists():
            detail = f"call {call.pk} is not what was sent (sha256 {call.sha256!r})"
            yield Violation("R8.hash", call.conversation_id, detail)


FINDERS: tuple[Finder, ...] = (
    find_duplicates,
    find_unreserved_numbers,
    find_bad_policies,
    find_broken_tiling,
    find_covering_nothing,
    find_lost_messages,
    find_bad_index,
    find_bad_summaries,
    find_bad_ancestors,
    find_missing_versions,
    find_unexplained_replies,
    find_uneven_parts,
    find_foreign_calls,
)
HASHING: tuple[Finder, ...] = (find_broken_signatures, find_changed_contexts)
