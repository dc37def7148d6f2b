"""The consent of a user to one call of a tool.

It holds for exactly this call, once, until it expires, in whatever process the answer
arrives. It is checked again just before the tool runs.
"""

from datetime import timedelta

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext as _
from langchain_core.utils.function_calling import convert_to_openai_tool

from chatsite.features.tools.context import SiteTool
from chatsite.features.tools.models import ToolCall, digest_of, hash_json
from chatsite.protocol.errors import CommandError
from chatsite.turns.models import Turn
from memory import transcript
from memory.engine.blank import is_blank
from memory.models import Change, Conversation
from memory.sql import round_robin_by_user

from .tool_loop import answers

State = ToolCall.State
MAX_REASON = 500
# In one sweep, in the thread that works for all turns: some milliseconds for each.
EXPIRED_AT_ONCE = 8

REFUSED = "No result: the user did not allow this call."
EXPIRED = "No result: this call was not allowed in time."


def tool_digest(tool: SiteTool) -> str:
    """Return the SHA-256, in hex, of what a consent takes for granted about a tool.

    That is its source, its description, its arguments and its marks. A server can
    change all of them in mid-conversation.
    """
    marks = [tool.source, tool.read_only, tool.idempotent, tool.needs_consent]
    return hash_json([convert_to_openai_tool(tool.tool), marks], default=str)


def ask(call: QuerySet[ToolCall], tool: SiteTool) -> int:
    """Let a call wait for an answer, for as long as the site allows.

    An earlier answer no longer counts.
    """
    return call.update(
        state=State.WAITING,
        tool_digest=tool_digest(tool),
        expires_at=Now() + timedelta(seconds=settings.CONSENT_SECONDS),
        allowed=None,
        answered_by=None,
        answered_at=None,
        reason="",
    )


def holds(call: QuerySet[ToolCall], tool: SiteTool) -> bool:
    """Return whether the call may run now.

    A user must have allowed it, with these arguments and this tool, and not too long
    ago.
    """
    given = call.filter(
        allowed=True, expires_at__gt=Now(), tool_digest=tool_digest(tool)
    ).first()
    return given is not None and _is_unchanged(given)


def _is_unchanged(call: ToolCall) -> bool:
    return call.digest == digest_of(call.name, call.arguments)


@transaction.atomic
def answer(
    conversation: Conversation,
    pk: int,
    user: AbstractBaseUser,
    *,
    allowed: bool,
    digest: str,
    reason: str = "",
) -> ToolCall:
    """Store a user's answer to the question of a call, and return the call.

    `digest`: of the call that the user has seen. The turn goes on once none of its
    calls waits any more; after a no, the model gets the refusal and its reason. The
    same answer twice is one. Raises CommandError.
    """
    transcript.lock_for_update(conversation)
    rows = ToolCall.objects.filter(conversation=conversation, pk=pk)
    rows = rows.select_related("turn__conversation", "request")
    call = rows.annotate(now=Now()).first()
    if call is None:
        raise CommandError("not_found", _("This no longer exists. Reload the page."))
    if call.allowed is allowed and call.answered_at:
        return answers.read(pk)
    _check(call, digest)
    reason = _check_reason(reason)
    given = {"allowed": allowed, "answered_by": user, "answered_at": Now()}
    if allowed:
        rows.update(state=State.ASKED, reason="", error="", **given)
    else:
        told = f"{REFUSED} The user's reason: {reason}" if reason else REFUSED
        no = answers.CallAnswer(State.CANCELLED, told, "refused")
        answers.store(call, call.turn, no, reason=reason, **given)
    _go_on(call.turn)
    action = Change.Action.ALLOW if allowed else Change.Action.REFUSE
    conversation.changes.create(action=action, seq=call.request.seq)
    return answers.read(pk)


def _check(call: ToolCall, digest: str) -> None:
    detail = _("This call is no longer waiting for an answer.")
    if call.answered_at:
        raise CommandError("answered", detail)
    if call.state != State.WAITING:
        raise CommandError("not_waiting", detail)
    if call.expires_at <= call.now:
        raise CommandError("expired", detail)
    if digest != call.digest or not _is_unchanged(call):
        detail = _("This call has changed since you saw it. Look at it again.")
        raise CommandError("changed", detail)


def _check_reason(reason: object) -> str:
    if not isinstance(reason, str) or not transcript.is_storable(reason):
        detail = _("This is not text, or it has characters that can't be stored.")
        raise CommandError("bad_text", detail)
    reason = "" if is_blank(reason) else reason.strip()
    if len(reason) > MAX_REASON:
        text = _("At most %(limit)s characters.") % {"limit": MAX_REASON}
        raise CommandError("too_long", text)
    return reason


def _go_on(turn: Turn) -> None:
    """Queue the turn again, unless another of its calls still waits."""
    if not turn.tool_calls.filter(state=State.WAITING).exists():
        answers.resume(Turn.objects.filter(pk=turn.pk))


def expired() -> QuerySet[ToolCall]:
    """Questions that were not answered in time."""
    return ToolCall.objects.filter(state=State.WAITING, expires_at__lte=Now())


def expire() -> list[ToolCall]:
    """Decline expired questions, so that their turns go on, and return the calls.

    Another process may be faster with some.
    """
    ordered = round_robin_by_user(expired(), "conversation__owner", "expires_at")
    keys = ordered.values_list("pk", "conversation")
    found = [_expire(*each) for each in keys[:EXPIRED_AT_ONCE]]
    return [call for call in found if call]


@transaction.atomic
def _expire(pk: int, conversation_id: int) -> ToolCall | None:
    transcript.lock_for_update(Conversation(pk=conversation_id))
    found = expired().select_related("turn__conversation", "request")
    call = found.filter(pk=pk).first()
    if call is None:
        return None
    no = answers.CallAnswer(State.CANCELLED, EXPIRED, "consent_expired")
    answers.store(call, call.turn, no)
    _go_on(call.turn)
    return answers.read(pk)
