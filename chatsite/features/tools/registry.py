"""The tools of the site: which there are, what each of them may do, and which of them a
conversation has.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, replace
from functools import lru_cache, partial, wraps
from typing import Any, Self
from weakref import WeakValueDictionary

from django.conf import settings
from django.utils.module_loading import import_string
from langchain_core.tools import BaseTool, tool
from langchain_core.utils.function_calling import convert_to_openai_tool

from chatsite import hooks
from chatsite.pages.presenters.calls import visible
from memory.engine.tokens import count_text
from memory.engine.tools import call_forms

from .context import CallContext

logger = logging.getLogger(__name__)

# Of all people together; and how many of them one person has at a time, so that slow
# tools of one do not keep those of others waiting.
THREADS = ThreadPoolExecutor(64, thread_name_prefix="tool")
THREADS_PER_USER = 8
# Whose call it is that runs in this context.
user_id: ContextVar[int] = ContextVar("user_id", default=0)
_own_threads: WeakValueDictionary[int, asyncio.Semaphore] = WeakValueDictionary()
BUILT_IN, SITE = "built in", "site"
# What hooks call tools.
KIND = "tool"

Look = Callable[[dict[str, Any], CallContext], Awaitable[Any]]
Cancel = Callable[[dict[str, Any], CallContext], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class SiteTool:
    """A LangChain tool, and what the site has to know of it.

    read_only: it changes nothing. idempotent: running one call twice is as running it
    once. needs_consent: a person has to allow each call. result_tokens: what of a
    result a model gets, 0: TOOL_RESULT_TOKENS. look: asks for a result that comes
    later, with the handle of the Pending that the tool returned; returns the result or
    another Pending, raises ToolException where there will be none. cancel: with the
    same, says that no one waits for it any more. seconds: what a call may take without
    a report of its progress, 0: TOOL_SECONDS; max_seconds: with them, 0: as long.
    source_notes: what a model reads of all tools of the source, before the first.
    reminds_of: the argument that a late result reminds the person of.
    """

    tool: BaseTool
    # What people see of it; "": its name.
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
    def of(cls, found: Any) -> Self:
        """The tool that a setting names: one of the site's or of LangChain's, or a
        function. Raises TypeError for what is none, ValueError for a function without
        a docstring, which models need."""
        if isinstance(found, cls):
            return found
        if isinstance(found, BaseTool):
            return cls(_with_threads(found))
        if isinstance(found, type) or not callable(found):
            raise TypeError(f"{found!r} is no tool and no function")
        return cls(_with_threads(tool(found)))

    @property
    def name(self) -> str:
        return self.tool.name

    def rename(self, name: str) -> Self:
        """The tool under a name that providers take; people see its own."""
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
        """Whether a call that may have begun can be run once more."""
        return self.read_only or self.idempotent


def _with_threads(found: BaseTool) -> BaseTool:
    """A copy whose function runs in the threads of tools. LangChain would take those of
    the event loop, which also look up the addresses of providers."""
    function = getattr(found, "func", None)
    if function is None or getattr(found, "coroutine", None):
        return found

    @wraps(function)
    async def run(*args: Any, **kwargs: Any) -> Any:
        work = partial(copy_context().run, function, *args, **kwargs)
        return await run_in_own_thread(work)

    return found.model_copy(update={"coroutine": run})


async def run_in_own_thread(work: Callable[[], Any]) -> Any:
    """work() in one of the person's threads. It is taken until the work has ended, also
    where no one waits for it any more."""
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
        return replace(SiteTool.of(found), **marks)

    return decorate


def available() -> dict[str, SiteTool]:
    """All tools that conversations can have, by name: those that are not switched off.
    Never waits and never raises."""
    return {name: tool for name, tool in known().items() if not is_tool_off(name)}


def is_tool_off(name: str) -> bool:
    """Whether staff have switched the tool off."""
    return hooks.is_switched_off(KIND, name)


def known() -> dict[str, SiteTool]:
    """All tools of the site by name. Servers that have not answered yet have no tools
    so far, see ready()."""
    from .builtin.listed import TOOLS
    from .mcp import mcp_servers as mcp
    from .web.web_tools import list_web_tools

    found: dict[str, SiteTool] = {}
    own, _ = _load_own(tuple(settings.TOOLS))
    for each in (*TOOLS, *list_web_tools(), *own, *mcp.tools()):
        # The first one keeps the name: no server can replace a tool of the site.
        found.setdefault(each.name, each)
    return found


async def ready() -> None:
    """Wait until each MCP server was asked for its tools once, a few seconds at most;
    later calls return at once."""
    from .mcp import mcp_servers as mcp

    await mcp.ready()


def chosen(names: Iterable[str]) -> list[SiteTool]:
    """The tools of these names, in this order; those that do not exist are skipped."""
    found = available()
    return [found[name] for name in dict.fromkeys(names) if name in found]


def make_schemas(site_tools: Iterable[SiteTool]) -> Iterator[dict[str, Any]]:
    """The first tool of each source carries what its source says of all of them."""
    told = set()
    for each in site_tools:
        schema = convert_to_openai_tool(each.tool)
        if each.source_notes and each.source not in told:
            told.add(each.source)
            function = schema["function"]
            text = f"{function.get('description', '')}\n\n{each.source_notes}"
            schema = {**schema, "function": {**function, "description": text}}
        yield schema


def count_tool_tokens(names: Iterable[str]) -> dict[str, int]:
    """What offering each of these tools takes of a request, estimated; those that are
    gone have no count."""
    tools = chosen(names)
    sizes = (
        count_text(json.dumps(schema, ensure_ascii=False))
        for schema in make_schemas(tools)
    )
    return {each.name: size for each, size in zip(tools, sizes, strict=True)}


def label_of(name: str) -> str:
    """What people see of a tool: its label, or its name if it has none or is gone."""
    tool = known().get(name)
    return visible(tool.title if tool else name)


def missing(names: Iterable[str]) -> list[str]:
    """Names of a conversation that no tool has now: removed, or its server is away."""
    found = available()
    return [name for name in dict.fromkeys(names) if name not in found]


def defaults() -> list[str]:
    """The names that new conversations begin with."""
    return list(dict.fromkeys(settings.DEFAULT_TOOLS))


def left_out() -> list[tuple[str, str, str]]:
    """The tools of servers that can't be offered: server, name, and why."""
    from .mcp import mcp_config

    servers = mcp_config.servers()
    return [(each.name, name, why) for each in servers for name, why in each.left_out]


def problems() -> list[str]:
    """What is wrong with TOOLS, one sentence for each path."""
    return _load_own(tuple(settings.TOOLS))[1]


@lru_cache(maxsize=8)
def _load_own(paths: tuple[str, ...]) -> tuple[list[SiteTool], list[str]]:
    tools, wrong = [], []
    for path in paths:
        try:
            tools.append(SiteTool.of(import_string(path)))
        except (ImportError, TypeError, ValueError) as error:
            wrong.append(f"{path!r} can't be used: {error}")
            logger.error("TOOLS: %r can't be used (%s)", path, type(error).__name__)
    names = call_forms.name_tools(each.name for each in tools)
    return [each.rename(names[each.name]) for each in tools], wrong
