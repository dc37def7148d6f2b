"""What a tool learns of the call that it answers, and how it says that its result comes
later.
"""

from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from langchain_core.messages import ToolMessage
from langchain_core.tools import ToolException


@dataclass(frozen=True, slots=True)
class CallContext:
    """Of one call; a tool gets it as the `context` of a ToolRuntime[CallContext].

    `asked_seq` is the number of the message that the turn answers; `idempotency_key` is
    the same whenever this call is run again, and different for every other call.
    """

    conversation_id: int
    turn_id: int
    call_id: str
    user_id: int
    idempotency_key: str
    asked_seq: int
    # IANA name, as the person's browser gave it; "": not known.
    time_zone: str = ""

    @property
    def zone(self) -> ZoneInfo:
        """The person's time zone, or else the site's."""
        return find_zone(self.time_zone) or ZoneInfo(settings.TIME_ZONE)


def find_zone(name: str) -> ZoneInfo | None:
    """The time zone of this IANA name; None for anything else."""
    try:
        return ZoneInfo(name) if name else None
    except (KeyError, ValueError, OSError):
        # Not known, not a name, the name of a folder.
        return None


class Pending(ToolMessage):
    """What a tool returns whose result comes later.

    A ToolMessage, so that LangChain's tool node hands it on as it is. `handle` is JSON
    that is stored with the call: all that SiteTool.look gets when it is asked for the
    result, `seconds` from now, in any process. `deadline`: seconds until the call
    counts as failed; None: the site's limit. `blocked`: the code of what keeps the
    result away, for the card (chatsite.protocol.errors).
    """

    handle: dict[str, Any]
    seconds: float
    deadline: float | None = None
    blocked: str = ""

    def __init__(
        self,
        handle: dict[str, Any],
        seconds: float,
        deadline: float | None = None,
        content: str = "The result will come later.",
        blocked: str = "",
    ) -> None:
        # The id of the call is the loop's to set.
        values = {"handle": handle, "seconds": seconds, "deadline": deadline}
        super().__init__(content, tool_call_id="", blocked=blocked, **values)


class CallCancelledError(ToolException):
    """A late result will not come: the tool itself has cancelled the call."""


class AnswerLostError(ToolException):
    """The call was begun, and no answer came: it is not known whether it ran."""
