"""Limits per user: pace, tokens of the day, turns at once and in the queue.

They are counted in the database and by its clock, so that they hold over all processes.

Everything here belongs into the transaction of what it limits: what is refused leaves
no trace, and what is counted was done. The user's row is locked after the
conversation's, never before.
"""

from datetime import date, datetime, time, timedelta
from functools import cache
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import (
    BooleanField,
    Case,
    Count,
    ExpressionWrapper,
    F,
    OuterRef,
    QuerySet,
    Subquery,
    When,
)
from django.db.models.functions import Coalesce, Now, TruncDate
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from chatsite import plugins
from chatsite.protocol.errors import CommandError
from memory.engine.tokens import count_text
from memory.models import Conversation, ModelCall
from memory.sql import PreparedUpdate, Update, prepared_rows, prepared_update

from .models import TURN_LEASE, Allowance, Turn

# After a pause a user may do this much of the pace at once.
BURST = timedelta(minutes=5)
# A turn takes about this long, so a full queue has room again after it.
QUEUE_SECONDS = 10.0
# After this long it is looked whether a deactivated account has come back.
DEACTIVATED_SECONDS = 600.0
TOO_FAST = gettext_noop(
    "You are sending faster than %(limit)s messages a minute. "
    "Wait %(wait)s and try again."
)


class OpenTurn(NamedTuple):
    """A turn that is not finished."""

    conversation_id: int
    is_running: bool  # in some process
    state: str


# The unfinished turns of a user, in their order.
OpenTurns = list[OpenTurn]


def admit_turn(user_id: int, *, stored: bool = True) -> OpenTurns:
    """Count one turn that was just requested; return the user's unfinished turns.

    The turn is stored already unless the caller is about to store it. Raises
    CommandError.
    """
    allowance = lock_allowance(user_id)
    _check_budget(allowance)
    open_turns = _open_turns(user_id)
    _check_queue(len(open_turns) + (not stored))
    _keep_pace(allowance, "next_message_at", settings.MESSAGES_PER_MINUTE, TOO_FAST)
    return open_turns


def check_turn(user_id: int) -> None:
    """Refuse what admit_turn() would refuse now, before work is done for it.

    Nothing is counted and no row locked: another message may be faster. Raises
    CommandError.
    """
    allowance = _read_allowance(user_id)
    _check_budget(allowance)
    _check_queue(len(_open_turns(user_id)) + 1)
    _check_pace(allowance, "next_message_at", settings.MESSAGES_PER_MINUTE, TOO_FAST)


def admit_conversation(user_id: int) -> None:
    """Count one new conversation. Raises CommandError."""
    _keep_pace(
        lock_allowance(user_id),
        "next_conversation_at",
        settings.CONVERSATIONS_PER_MINUTE,
        gettext_noop(
            "You are starting more than %(limit)s conversations a minute. "
            "Wait %(wait)s and try again."
        ),
    )


def admit_spending(user_id: int) -> None:
    """Raise CommandError for a user who has used up the tokens of the day.

    Called before requests that the site would pay for: a rebuild, a proposal, a
    compaction by hand, an experiment.
    """
    _check_budget(_read_allowance(user_id))


def _read_allowance(user_id: int) -> Allowance:
    """Return the user's row as it is, without a lock; an unsaved one without a row."""
    if found := _select_allowance(user=user_id):
        return found[0]
    allowance = Allowance(pk=user_id)
    allowance.now = timezone.now()
    return allowance


@prepared_rows()
def _select_allowance(user: Any) -> QuerySet[Allowance]:
    return Allowance.objects.annotate(now=Now()).filter(pk=user)


@transaction.atomic
def admit_summary(user_id: int) -> None:
    """Count one request to a model that is about to be sent beside replies.

    Raises CommandError.
    """
    allowance = lock_allowance(user_id)
    if not allowance.is_active:
        text = _("The account is deactivated.")
        raise CommandError("deactivated", text, retry_after=DEACTIVATED_SECONDS)
    _check_budget(allowance)
    _keep_pace(
        allowance,
        "next_summary_at",
        settings.SUMMARIES_PER_MINUTE,
        gettext_noop(
            "Your conversations are summarised with up to %(limit)s requests a "
            "minute. Wait %(wait)s and try again."
        ),
    )


def is_used_up(turn: Turn) -> bool:
    """Return whether the turn's owner has no tokens left by now.

    Other turns of the owner may have used them since this one was sent.
    """
    try:
        admit_spending(turn.conversation.owner_id)
    except CommandError:
        return True
    return False


def lock_allowance(user_id: int) -> Allowance:
    """Lock and return the user's row, with the database's time as `now`.

    No other transaction changes the row until this one ends.
    """
    if found := _select_locked(user=user_id):
        return found[0]
    Allowance.objects.bulk_create([Allowance(pk=user_id)], ignore_conflicts=True)
    return _select_locked(user=user_id)[0]


@prepared_rows()
def _select_locked(user: Any) -> QuerySet[Allowance]:
    rows = Allowance.objects.select_for_update().filter(pk=user)
    # Not by a join: that would lock the user's own row, too.
    users = get_user_model().objects.filter(pk=OuterRef("pk"))
    return rows.annotate(
        now=Now(), is_active=Subquery(users.values("is_active"))
    ).order_by()


def _keep_pace(allowance: Allowance, field: str, limit: int, words: str) -> None:
    """Count one more action, unless the pace is further ahead than a burst may be."""
    if due := _check_pace(allowance, field, limit, words):
        _update_allowance(user=allowance.pk, **{field: due})


def _check_pace(allowance: Any, field: str, limit: int, words: str) -> datetime | None:
    """Return up to when one more action uses the pace; None: there is no limit."""
    if limit <= 0:
        return None
    now: datetime = allowance.now
    # A clock that was set back must not lock a user out for long.
    due = min(max(getattr(allowance, field) or now, now), now + BURST)
    due += timedelta(minutes=1) / limit
    wait = (due - now - BURST).total_seconds()
    if wait > 0:
        detail = _(words) % {"limit": limit, "wait": _in_words(wait)}
        raise CommandError("rate_limited", detail, retry_after=round(wait + 0.05, 1))
    return due


@prepared_update()
def _update_allowance(user: Any, **values: Any) -> Update:
    return Allowance.objects.filter(pk=user), values


def budget_of(allowance: Allowance) -> int:
    """Return the tokens per day; 0 = no limit."""
    own = allowance.tokens_per_day
    return settings.TOKENS_PER_DAY if own is None else own


def used_on(allowance: Allowance, day: date) -> int:
    return allowance.tokens_used if allowance.day == day else 0


def _check_budget(allowance: Allowance) -> None:
    """Check the tokens of the day, and the limits that other apps set on spending."""
    for check in plugins.guards["spend"]:
        check(user_id=allowance.pk)
    budget, now = budget_of(allowance), timezone.localtime(allowance.now)
    if not budget or used_on(allowance, now.date()) < budget:
        return
    midnight = datetime.combine(now.date() + timedelta(days=1), time(), now.tzinfo)
    wait = (midnight - now).total_seconds()
    raise CommandError(
        "quota",
        _(
            "You have used up the %(budget)s tokens for today. You get new ones in "
            "%(wait)s."
        )
        % {"budget": f"{budget:,}", "wait": _in_words(wait)},
        retry_after=round(wait + 1),
    )


def _check_queue(count: int) -> None:
    limit = settings.QUEUED_PER_USER
    if limit <= 0 or count <= limit:
        return
    raise CommandError(
        "queue_full",
        _(
            "%(limit)s of your messages are still waiting for a reply. Let some of "
            "them finish, or cancel them, and try again."
        )
        % {"limit": f"{limit:,}"},
        retry_after=QUEUE_SECONDS,
    )


def _open_turns(user_id: int) -> OpenTurns:
    return [OpenTurn(*each) for each in _open_of(user=user_id)]


@prepared_rows()
def _open_of(user: Any) -> QuerySet[Turn, Any]:
    is_running = ExpressionWrapper(TURN_LEASE.match_alive(), BooleanField())
    rows = Turn.objects.filter(
        conversation__owner_id=user, state__one_of=Turn.UNFINISHED
    )
    rows = rows.order_by("pk").annotate(is_running=is_running)
    return rows.values_list("conversation_id", "is_running", "state")


def _in_words(seconds: float) -> str:
    if seconds < 90:
        return _("%(n)s s") % {"n": max(1, round(seconds))}
    if seconds < 5400:
        n = round(seconds / 60)
        return ngettext("%(n)s minute", "%(n)s minutes", n) % {"n": n}
    n = round(seconds / 3600)
    return ngettext("%(n)s hour", "%(n)s hours", n) % {"n": n}


def may_run(turn: Turn) -> bool:
    """Return whether the turn's owner has a free place for it.

    Conversations that waited longer go first, so that one conversation's queue does not
    keep the next one waiting.
    """
    if settings.TURNS_PER_USER <= 0:
        return True
    user_id = turn.conversation.owner_id
    lock_allowance(user_id)
    return turn.conversation_id in _with_a_place(_open_turns(user_id))


def has_place(open_turns: OpenTurns) -> bool:
    """Return whether one more conversation may run beside these turns.

    Those of them that wait longer go first.
    """
    limit = settings.TURNS_PER_USER
    places = {turn.conversation_id for turn in _able_to_run(open_turns)}
    return limit <= 0 or len(places) < limit


def _able_to_run(open_turns: OpenTurns) -> OpenTurns:
    """Leave out conversations that wait for the user's consent: they need no place."""
    asking = {
        turn.conversation_id for turn in open_turns if turn.state == Turn.State.WAITING
    }
    return [turn for turn in open_turns if turn.conversation_id not in asking]


def next_waiting(conversation_id: int) -> list[int] | None:
    """Return the owner's conversations that may go on after a turn of this one ended.

    None: no limit keeps any of them waiting.
    """
    if settings.TURNS_PER_USER <= 0:
        return None
    open_turns = _open_beside(conversation=conversation_id)
    return _with_a_place([OpenTurn(*each) for each in open_turns])


@prepared_rows()
def _open_beside(conversation: Any) -> QuerySet[Turn, Any]:
    owner = Conversation.objects.filter(pk=conversation).order_by()
    return _open_of.build(owner.values("owner_id")[:1])


def _with_a_place(open_turns: OpenTurns) -> list[int]:
    """Return the conversations whose next turn may run beside those that do."""
    running = {turn.conversation_id for turn in open_turns if turn.is_running}
    able = dict.fromkeys(turn.conversation_id for turn in _able_to_run(open_turns))
    waiting = [pk for pk in able if pk not in running]
    return waiting[: max(0, settings.TURNS_PER_USER - len(running))]


def with_room(turns: QuerySet[Turn]) -> QuerySet[Turn]:
    """Leave out queued turns whose owner has as many running turns as allowed."""
    limit = settings.TURNS_PER_USER
    if limit <= 0:
        return turns
    same_owner = Turn.objects.filter(
        TURN_LEASE.match_alive(), conversation__owner=OuterRef("conversation__owner")
    )
    per_owner = same_owner.order_by().values("conversation__owner")
    count = per_owner.annotate(count=Count("pk")).values("count")
    counted = turns.annotate(running=Coalesce(Subquery(count), 0))
    return counted.exclude(state=Turn.State.QUEUED, running__gte=limit)


class ModelUse(NamedTuple):
    """The tokens that a request took of a model.

    `cached` of those that were read came from the provider's cache; `extra` is what
    writing to it cost besides, in tokens that were read.
    """

    model: str
    read: int
    written: int = 0
    cached: int = 0
    extra: int = 0


def charge_call(call: ModelCall, text: str = "", work: int | None = None) -> None:
    """Count a request's tokens for its owner: as reported, else as estimated.

    `work`: the turn or trial that it was for. A request that failed before its first
    word and reported nothing costs nothing; one that this site itself broke off may
    have.
    """
    plugins.call_ended.send_robust(ModelCall, call=call.pk, work=work)
    reported = call.tokens_input or call.tokens_output
    failed = call.error and call.error != "cancelled" and not text and not reported
    read = call.tokens_input or call.tokens_estimated
    written = call.tokens_output or count_text(text)
    cached = (call.tokens_cached or 0) if call.tokens_input else 0
    if not failed:
        used = ModelUse(call.model, read, written, min(cached, read), call.tokens_extra)
        charge_use(call.conversation.owner_id, used)


@transaction.atomic(savepoint=False)
def charge_use(user_id: int, used: ModelUse) -> None:
    if tokens := used.read + used.written:
        charge_tokens(user_id, tokens)
        plugins.call_charged.send(None, user=user_id, used=used)


@transaction.atomic(savepoint=False)
def charge_tokens(user_id: int, tokens: int) -> None:
    charge_one = _prepare_charge(timezone.get_current_timezone_name())
    if not charge_one(user=user_id, tokens=tokens):
        lock_allowance(user_id)
        charge_one(user=user_id, tokens=tokens)


@cache
def _prepare_charge(time_zone: str) -> PreparedUpdate:
    """Return the statement that charges tokens to the current day of this time zone."""

    @prepared_update()
    def charge_one(user: Any, tokens: Any) -> Update:
        today = TruncDate(Now(), tzinfo=ZoneInfo(time_zone))
        used = Case(When(day=today, then=F("tokens_used")), default=0) + tokens
        return Allowance.objects.filter(pk=user), {"tokens_used": used, "day": today}

    return charge_one
