"""The invariants of turns: the promises about replies that the chat tables can show."""

from collections.abc import Iterator
from datetime import timedelta

from django.conf import settings
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from chatsite import plugins
from memory.integrity.audit import Finder, Violation, report_rows, without_staged
from memory.models import Change, Conversation, Message

from .models import Turn

State = Turn.State


def check_turns(*, at_rest: bool = False) -> Iterator[Violation]:
    """Yield the violations of all rules.

    `at_rest`: no process runs, as in a backup, so nothing can be late.
    """
    rules = (rule for data in plugins.app_data for rule in data.audit_rules)
    for find in (*FINDERS, *rules):
        if not (at_rest and find is find_stuck):
            yield from without_staged(find())


def find_two_running() -> Iterator[Violation]:
    running = Turn.objects.filter(state=State.RUNNING).order_by()
    groups = running.values("conversation_id").annotate(count=Count("pk"))
    for group in groups.filter(count__gt=1):
        detail = f"{group['count']} turns are running at once"
        yield Violation("R3", group["conversation_id"], detail)


def find_stuck() -> Iterator[Violation]:
    """Find turns that a sweep should have taken over or ended by now."""
    # Nothing may be left alone for longer than one lease and one sweep.
    seconds = settings.TURN_LEASE_SECONDS + settings.TURN_SWEEP_SECONDS
    long_ago = Now() - timedelta(seconds=seconds)
    expired = Q(lease_until=None) | Q(lease_until__lt=long_ago)
    running = Turn.objects.filter(expired, state=State.RUNNING)
    yield from _report_turns(running, "R4.lease", "is running without a live lease")
    # Sending, retrying and stopping touch the conversation, so what is still queued
    # in a quiet one waits behind a running turn, or else for nothing.
    before = Turn.objects.filter(conversation=OuterRef("conversation"))
    busy = before.filter(Q(state=State.RUNNING) | Q(finished_at__gte=long_ago))
    queued = Turn.objects.filter(
        ~Exists(busy), state=State.QUEUED, conversation__updated_at__lt=long_ago
    )
    yield from _report_turns(queued, "R4.queued", "is queued and no process takes it")


def find_unknown_states() -> Iterator[Violation]:
    rows = Turn.objects.exclude(state__in=State.values)
    yield from _report_turns(rows, "R4.state", "has an unknown state")
    ended = Turn.objects.exclude(state__in=Turn.UNFINISHED)
    timeless = ended.filter(finished_at=None)
    yield from _report_turns(timeless, "R4.time", "has ended at no time")


def find_unanswered() -> Iterator[Violation]:
    """Find messages that no turn was ever to answer, and ones answered twice."""
    rows = Message.objects.filter(role=Message.Role.USER, turns=None)
    yield from report_rows(rows, "R4.no_turn", "message #{} has no turn", "seq")
    groups = Turn.objects.order_by().values("conversation_id", "user_message__seq")
    for group in groups.annotate(count=Count("pk")).filter(count__gt=1):
        detail = f"message #{group['user_message__seq']} has {group['count']} turns"
        yield Violation("R2.turns", group["conversation_id"], detail)


def find_lost_replies() -> Iterator[Violation]:
    """Find ended turns whose text is not in the transcript, word for word."""
    ended = Turn.objects.exclude(state__in=Turn.UNFINISHED)
    silent = ended.filter(reply=None, text="", state=State.DONE)
    yield from _report_turns(silent, "R4.no_reply", "is done without a reply")
    unsaved = ended.filter(reply=None).exclude(text="")
    yield from _report_turns(unsaved, "R5.lost", "has a text but no reply")
    differing = ended.exclude(reply=None).exclude(text=F("reply__text"))
    yield from _report_turns(differing, "R5.text", "has another text than its reply")


def find_misplaced_replies() -> Iterator[Violation]:
    early = Turn.objects.filter(state__in=Turn.UNFINISHED).exclude(reply=None)
    yield from _report_turns(early, "R4.early", "is not finished but has a reply")
    rows = Turn.objects.exclude(reply=None)
    moved = rows.exclude(reply_seq=F("reply__seq"))
    yield from _report_turns(moved, "R6.reply_seq", "has a reply under another number")
    foreign = ~Q(user_message__conversation=F("conversation")) | (
        Q(reply__isnull=False) & ~Q(reply__conversation=F("conversation"))
    )
    crossed = Turn.objects.filter(foreign)
    yield from _report_turns(
        crossed, "R6.foreign", "has messages of another conversation"
    )
    # One that asks for calls is no turn's last word, and nothing tells it from others
    # once it is deleted.
    orphans = Message.objects.filter(
        role=Message.Role.ASSISTANT,
        superseded_at=None,
        turn=None,
        tool_calls=[],
        deleted_at=None,
    )
    yield from report_rows(orphans, "R2.reply", "reply #{} belongs to no turn", "seq")


def find_missing_messages() -> Iterator[Violation]:
    """Find numbers that were given out, yet no message has one.

    A number is not missing where a turn still waits for it, has ended without a reply,
    had none before another one was requested, or had room for more tool calls.
    """
    counts = Conversation.objects.annotate(count=Count("messages"))
    for conversation in counts.exclude(count=F("next_seq") - 1).iterator():
        turns = conversation.turns.filter(reply=None)
        asked_again = conversation.changes.filter(action=Change.Action.REGENERATE)
        without = set(turns.values_list("reply_seq", flat=True))
        without.update(asked_again.values_list("seq", flat=True))
        left_free = conversation.turns.values_list("user_message__seq", "room")
        room = dict(left_free.exclude(room=0))
        for first, last in _find_gaps(conversation):
            free = range(max(first, last + 1 - room.get(last + 1, 0)), last + 1)
            known = without.union(free)
            missing = last - first + 1 - sum(first <= seq <= last for seq in known)
            if missing:
                detail = f"{missing} messages are gone between #{first} and #{last}"
                yield Violation("R1.missing", conversation.pk, detail)


def _find_gaps(conversation: Conversation) -> Iterator[tuple[int, int]]:
    """Yield stretches of numbers without a message, as first and last.

    Copied or imported messages may have had gaps before, and are older than their
    conversation.
    """
    free = 1
    rows = conversation.messages.order_by("seq")
    for seq, imported_at, created_at in rows.values_list(
        "seq", "imported_at", "created_at"
    ):
        is_own = not imported_at and created_at >= conversation.created_at
        if seq > free and is_own:
            yield free, seq - 1
        free = seq + 1
    if free < conversation.next_seq:
        yield free, conversation.next_seq - 1


def _report_turns(rows: QuerySet[Turn], code: str, words: str) -> Iterator[Violation]:
    return report_rows(rows, code, f"turn {{}} ({{}}) {words}", "pk", "state")


FINDERS: tuple[Finder, ...] = (
    find_two_running,
    find_stuck,
    find_unknown_states,
    find_unanswered,
    find_lost_replies,
    find_misplaced_replies,
    find_missing_messages,
)
