"""A tool with the site's data about it, and the context of the call that it answers.

The context lets the tool report its progress, or say that its result comes later.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any, Self
from weakref import WeakValueDictionary
from zoneinfo import ZoneInfo

from django.conf import settings
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, ToolException, tool

# Of all users together; and how many of them one user has at a time, so that slow
# tools of one do not keep those of others waiting.
THREADS = ThreadPoolExecutor(64, thread_name_prefix="tool")
THREADS_PER_USER = 8
# The user whose call runs in this context.
user_id: ContextVar[int] = ContextVar("user_id", default=0)
# Its conversation.
conversation_id: ContextVar[int] = ContextVar("conversation_id", default=0)
_own_threads: WeakValueDictionary[int, asyncio.Semaphore] = WeakValueDictionary()
BUILT_IN, SITE = "built in", "site"
# The largest progress value: JSON in browsers holds no larger integer.
MOST_DONE = 2**53


def find_zone(name: str) -> ZoneInfo | None:
    """Return the time zone of this IANA name, None for anything else."""
    try:
        return ZoneInfo(name) if name else None
    except (KeyError, ValueError, OSError):
        # Not known, not a name, the name of a folder.
        return None


@dataclass(frozen=True, slots=True)
class CallContext:
    """The context of one call, which a tool gets in a ToolRuntime[CallContext].

    `asked_seq` is the number of the message that the turn answers; `idempotency_key` is
    the same whenever this call is run again, and different for every other call.
    """

    conversation_id: int
    turn_id: int
    call_id: str
    user_id: int
    idempotency_key: str
    asked_seq: int
    # IANA name, as the user's browser gave it; "": not known.
    time_zone: str = ""

    @staticmethod
    def find_conversation() -> int:
        """Return the id of the conversation whose call runs now; 0: no call runs."""
        return conversation_id.get()

    @property
    def zone(self) -> ZoneInfo:
        """The user's time zone, or else the site's."""
        return find_zone(self.time_zone) or ZoneInfo(settings.TIME_ZONE)


@dataclass(frozen=True, slots=True)
class CallProgress:
    """The progress of a call: `done` of `total`, and a `message` on the current step.

    Either number is None if it is not known or cannot be shown.
    """

    done: float | None
    total: float | None = None
    message: str = ""

    @classmethod
    def from_values(cls, done: Any, total: Any = None, message: str = "") -> Self:
        return cls(_read_number(done), _read_number(total), " ".join(message.split()))

    # Its former name, for tools of a site until the next release; so below.
    of = from_values


def _read_number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and math.isfinite(value)
    return value if is_number and 0 <= value <= MOST_DONE else None


# The receiver of the progress of the call in this context, in any thread.
listener: ContextVar[Callable[[CallProgress], None]] = ContextVar("listener")


def reporter() -> Callable[[CallProgress], None]:
    """Return a function that shows the user the progress of the call of this context.

    It is for tools that take long. The time limit of a call begins again with each
    report, up to the tool's `max_seconds`.
    """
    return listener.get(_ignore)


def _ignore(_: CallProgress) -> None:
    """Ignore the progress outside of a call."""


class PendingResult(ToolMessage):
    """The return value of a tool whose result comes later.

    It is a ToolMessage, so that LangChain's tool node returns it unchanged. `handle` is
    JSON that is stored with the call: SiteTool.look gets it, `seconds` from now, in any
    process, to find the result. `deadline`: seconds until the call counts as failed;
    None: the site's limit. `blocked`: the code of what delays the result, for the card
    (chatsite.protocol.errors).
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


Pending, Progress = PendingResult, CallProgress
Look = Callable[[dict[str, Any], CallContext], Awaitable[Any]]
Cancel = Callable[[dict[str, Any], CallContext], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class SiteTool:
    """A LangChain tool, and what the site has to know about it.

    read_only: the call changes nothing. idempotent: running one call twice is the same
    as running it once. needs_consent: a user has to allow each call. result_tokens:
    how much of a result a model gets, 0: TOOL_RESULT_TOKENS. look: asks for a late
    result, with the handle of the PendingResult that the tool returned; returns the
    result or another PendingResult, raises ToolException if there will be none.
    cancel: with the same handle, tells the tool that the call was cancelled. seconds:
    the limit of a call without a progress report, 0: TOOL_SECONDS; max_seconds: the
    limit with reports, 0: the same. source_notes: what a model reads of all tools of
    the source, before the first. reminds_of: the argument of a late result's reminder.
    """

    tool: BaseTool
    # The name for users; "": the tool's name.
    label: Any = ""
    read_only: bool = False
    idempotent: bool = False
    needs_consent: bool = False
    source: str = SITE
    source_notes: str = ""
    result_tokens: int = 0
    look: Look | None = None
    cancel: Cancel | None = None
    seconds: float = 0.0
    max_seconds: float = 0.0
    reminds_of: str = ""

    @classmethod
    def from_object(cls, found: Any) -> Self:
        """Return the tool that a setting names.

        It is a SiteTool, a LangChain tool or a function. Raises TypeError for other
        objects, ValueError for a function without a docstring, which models need.
        """
        if isinstance(found, cls):
            return found
        if isinstance(found, BaseTool):
            return cls(_with_threads(found))
        if isinstance(found, type) or not callable(found):
            raise TypeError(f"{found!r} is no tool and no function")
        return cls(_with_threads(tool(found)))

    of = from_object

    @property
    def name(self) -> str:
        return self.tool.name

    def with_name(self, name: str) -> Self:
        """Return the tool under a name that providers take; users see its own."""
        if name == self.name:
            return self
        renamed = self.tool.model_copy(update={"name": name})
        return replace(self, tool=renamed, label=self.title)

    @property
    def title(self) -> str:
        return str(self.label or self.name)

    @property
    def budget(self) -> int:
        """Tokens that its result may have in a request."""
        return self.result_tokens or settings.TOOL_RESULT_TOKENS

    @property
    def time_limits(self) -> tuple[float, float]:
        """Seconds without a report of progress, and in all."""
        idle = self.seconds or settings.TOOL_SECONDS
        return idle, max(idle, self.max_seconds)

    @property
    def runs_again(self) -> bool:
        """True if a call that may have begun can be run once more."""
        return self.read_only or self.idempotent


def _with_threads(found: BaseTool) -> BaseTool:
    """Return a copy whose function runs in the threads of tools.

    LangChain would use those of the event loop, which also resolve the addresses of
    providers.
    """
    function = getattr(found, "func", None)
    if function is None or getattr(found, "coroutine", None):
        return found

    @wraps(function)
    async def run(*args: Any, **kwargs: Any) -> Any:
        work = partial(copy_context().run, function, *args, **kwargs)
        return await run_in_own_thread(work)

    return found.model_copy(update={"coroutine": run})


async def run_in_own_thread(work: Callable[[], Any]) -> Any:
    """Run work() in one of the user's threads.

    The thread is taken until the work has ended, also after its caller was cancelled.
    """
    loop = asyncio.get_running_loop()
    semaphore = asyncio.Semaphore(THREADS_PER_USER)
    own = _own_threads.setdefault(user_id.get(), semaphore)
    await own.acquire()
    begun = THREADS.submit(work)

    def release(_: Any) -> None:
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(own.release)

    begun.add_done_callback(release)
    return await asyncio.wrap_future(begun)


def site_tool(**marks: Any) -> Callable[[Any], SiteTool]:
    """Decorate a function or a LangChain tool with fields of SiteTool:

    @site_tool(needs_consent=True)
    """

    def decorate(found: Any) -> SiteTool:
        return replace(SiteTool.from_object(found), **marks)

    return decorate
