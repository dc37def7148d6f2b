"""The commands of users about calls over the socket."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext as _

from chatsite.live.socket_client import CommandEffect, SocketClient
from chatsite.plugins import AppCommand, AppEvent
from chatsite.protocol.errors import CommandError
from chatsite.protocol.events import read_integer
from memory.models import Conversation

from . import consent, late_results
from .events import ToolEvent
from .models import ToolCall


@dataclass(frozen=True, slots=True)
class Consent(AppCommand):
    """A user's answer to whether a call may run.

    `digest` is that of the call that they have seen.
    """

    call: int
    allow: bool
    digest: str
    reason: object = ""

    def store_answer(self, conversation: Conversation) -> ToolCall:
        given = {"allowed": self.allow, "digest": self.digest, "reason": self.reason}
        return consent.answer(conversation, self.call, conversation.owner, **given)

    def apply_to(self, conversation: Conversation) -> CommandEffect:
        answered = self.store_answer(conversation)
        return CommandEffect(published=(ToolEvent.from_call(answered),), has_work=True)


@dataclass(frozen=True, slots=True)
class CancelCall(AppCommand):
    """Wait no longer for the late result of a call."""

    call: int

    def apply_to(self, conversation: Conversation) -> CommandEffect:
        cancelled = late_results.cancel(conversation, self.call)
        return CommandEffect(published=late_results.events_of(cancelled))


def read_consent(value: Mapping[str, Any]) -> Consent:
    """Return the answer in a frame or a form. Raises CommandError."""
    allow = {"true": True, "false": False}.get(str(value.get("allow")).lower())
    digest = value.get("digest")
    if allow is None or not isinstance(digest, str):
        detail = _("A consent has a call, allow (true or false) and its digest.")
        raise CommandError("bad_frame", detail)
    call = read_integer(value, "call")
    return Consent(call, allow, digest, value.get("reason") or "")


READERS = {
    "consent": read_consent,
    "cancel_call": lambda value: CancelCall(read_integer(value, "call")),
}


def find_standing(client: SocketClient, turns: Iterable[int]) -> Iterable[AppEvent]:
    """Return events of the calls of these turns and of those with late results."""
    rows = ToolCall.objects.filter(conversation_id=client.conversation_id)
    rows = rows.filter(Q(turn__in=turns) | Q(state=ToolCall.State.LATE))
    rows = rows.select_related("request", "result", "late_result").order_by("pk")
    calls = rows.only(
        *("turn", "name", "state", "arguments", "digest", "started_at", "finished_at"),
        *("error", "request__seq", "result__seq", "late_result__seq"),
    )
    return map(ToolEvent.from_call, calls)
