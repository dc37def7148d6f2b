"""What a tool learns of the call that it answers, and how it says how far it is or that
its result comes later.
"""

import math
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Self
from zoneinfo import ZoneInfo

from django.conf import settings
from langchain_core.messages import ToolMessage
from langchain_core.tools import ToolException

from chatsite.accounts.preferences import find_zone

# Of progress: what JSON of a browser can hold.
MOST_DONE = 2**53


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


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a call is: so much `done` of the `total`, and what it does now. Either is
    None where it is no number that can be shown."""

    done: float | None
    total: float | None = None
    message: str = ""

    @classmethod
    def of(cls, done: Any, total: Any = None, message: str = "") -> Self:
        return cls(_read_number(done), _read_number(total), " ".join(message.split()))


def _read_number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and math.isfinite(value)
    return value if is_number and 0 <= value <= MOST_DONE else None


# Who hears of the progress of the call that runs in this context, in any thread.
listener: ContextVar[Callable[[Progress], None]] = ContextVar("listener")


def reporter() -> Callable[[Progress], None]:
    """A function that tells the person how far the call of this context is; for tools
    that take long. The time limit of a call begins again with each report, up to the
    tool's `max_seconds`."""
    return listener.get(_ignore)


def _ignore(_: Progress) -> None:
    """No one waits for it."""


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
