"""The events of calls on the socket: JSON for JSON clients, HTML for pages."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from chatsite.plugins import AppEvent

from .models import ToolCall
from .registry import label_of

if TYPE_CHECKING:
    from chatsite.live.fragments import LivePage
    from chatsite.live.socket_client import SocketClient

# Characters of a call's arguments, as JSON.
MAX_ARGUMENTS = 8_000


@dataclass(frozen=True, slots=True)
class ToolEvent(AppEvent):
    """A change of a call.

    `seq` is the message that asked for it, `result_seq` the newest that answers it;
    arguments beyond MAX_ARGUMENTS characters are left out. `progress`: that of a
    running call, as its tool has reported it.
    """

    type: ClassVar = "tool"
    is_synced: ClassVar = True
    turn: int
    call: int
    name: str
    state: str
    arguments: dict[str, Any] | None
    seq: int
    result_seq: int | None
    ms: int | None
    error: str
    digest: str
    progress: dict[str, Any] | None = None

    @classmethod
    def from_call(cls, call: ToolCall) -> Self:
        answer = call.late_result or call.result
        is_long = len(json.dumps(call.arguments)) > MAX_ARGUMENTS
        return cls(
            turn=call.turn_id,
            call=call.pk,
            name=call.name,
            state=call.state,
            arguments=None if is_long else call.arguments,
            seq=call.request.seq,
            result_seq=answer.seq if answer else None,
            ms=call.ms,
            error=call.error,
            digest=call.digest,
        )

    def describe_status(self) -> str:
        if self.state != ToolCall.State.WAITING:
            return ""
        return _("%(name)s is waiting for your answer") % {"name": label_of(self.name)}

    def draw_at_once(self, page: "LivePage") -> str | None:
        """Return the progress of a running call, None if the page lacks its card."""
        if self.progress is None or self.call not in page.steps:
            return None
        values = {"call": self.call, "progress": self.progress, "oob": True}
        return render_to_string("tools/_progress.html", values)

    def draw_on(self, page: "LivePage", client: "SocketClient") -> Iterator[str]:
        return page.draw_step(client.conversation_id, self)
