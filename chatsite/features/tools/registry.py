"""The tools of the site: which there are, and which of them a conversation has."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string
from langchain_core.utils.function_calling import convert_to_openai_tool

from chatsite import plugins
from chatsite.llm.dialects import Tools
from chatsite.pages.presenters.calls import visible
from memory.engine.compose import dump_wire
from memory.engine.tokens import count_text
from memory.engine.tools import call_forms
from memory.models import Conversation

from .context import SiteTool

logger = logging.getLogger(__name__)

# The word for tools in guards and sources.
KIND = "tool"


class ToolSource:
    """Tools that an app of contrib brings; it registers a source of these."""

    def list_tools(self) -> Iterable[SiteTool]:
        """Return those that are known by now. Never waits and never raises."""
        return ()

    async def ready(self) -> None:
        """Wait until they were asked for once, a few seconds at most."""

    def left_out(self) -> Iterable[tuple[str, str, str]]:
        """Return those that can't be offered: where they are from, name, and why."""
        return ()

    def name_starts(self) -> tuple[str, ...]:
        """Return how the names of tools begin that may not be known yet."""
        return ()


def _list_sources() -> Iterable[ToolSource]:
    return plugins.sources[ToolSource].values()


def available() -> dict[str, SiteTool]:
    """Return all tools that conversations can have, by name, without disabled ones.

    Never waits and never raises.
    """
    from .builtin.tool_search import FINDER

    return {
        name: tool
        for name, tool in known().items()
        if tool is not FINDER and not is_tool_off(name)
    }


def is_tool_off(name: str) -> bool:
    """Return whether staff have switched the tool off."""
    return plugins.is_switched_off(KIND, name)


def known() -> dict[str, SiteTool]:
    """Return all tools of the site by name.

    Servers that have not answered yet have no tools so far, see ready().
    """
    from .builtin.builtin_tools import TOOLS
    from .builtin.tool_search import FINDER

    found: dict[str, SiteTool] = {}
    own, _ = _load_own(tuple(settings.TOOLS))
    for each in (
        *TOOLS,
        *own,
        *chain(*(source.list_tools() for source in _list_sources())),
        # Offered in place of many; see tool_search.
        FINDER,
    ):
        # The first one keeps the name: no server can replace a tool of the site.
        found.setdefault(each.name, each)
    return found


async def ready() -> None:
    """Wait until each source knows its tools, a few seconds at most.

    Later calls return at once.
    """
    for source in _list_sources():
        await source.ready()


def chosen(names: Iterable[str]) -> list[SiteTool]:
    """Return the tools of these names, in this order, without unknown ones."""
    from .builtin.tool_search import FINDER

    found = {FINDER.name: FINDER, **available()}
    return [found[name] for name in dict.fromkeys(names) if name in found]


def list_callable(names: Sequence[str]) -> list[SiteTool]:
    """Return the tools of these names, and the search for them if there are many."""
    from .builtin.tool_search import FINDER

    return chosen([*names, *([FINDER.name] if is_on_demand(names) else ())])


def make_schemas(site_tools: Iterable[SiteTool]) -> Iterator[dict[str, Any]]:
    """Yield the schemas of tools.

    The first tool of each source has the notes of its source on all of them.
    """
    described = set()
    for each in site_tools:
        schema = convert_to_openai_tool(each.tool)
        if each.source_notes and each.source not in described:
            described.add(each.source)
            function = schema["function"]
            text = f"{function.get('description', '')}\n\n{each.source_notes}"
            schema = {**schema, "function": {**function, "description": text}}
        yield schema


def offer_tools(site_tools: Iterable[SiteTool]) -> Tools:
    """Return the tools as a request names them, with their estimated tokens."""
    schemas = tuple(make_schemas(site_tools))
    return Tools(schemas, count_text(dump_wire(schemas)) if schemas else 0)


def list_offered(conversation: Conversation) -> tuple[str, ...]:
    """Return the names of the tools that the next request offers to the model."""
    names = [name for name in conversation.tools if not is_tool_off(name)]
    if not is_on_demand(names):
        return tuple(names)
    from .builtin import tool_search

    return tool_search.limit_offer(conversation, chosen(names))


def is_on_demand(names: Sequence[str]) -> bool:
    """Return whether a request offers a search for these tools, and those it found."""
    if not 0 < settings.TOOLS_ON_DEMAND < len(names):
        return False
    from .builtin.tool_search import FINDER

    # A tool of the site can have the name, and staff can switch it off.
    is_there = known()[FINDER.name] is FINDER
    return is_there and not is_tool_off(FINDER.name)


def offer_now(conversation: Conversation) -> Tools:
    """Return the tools that the next request of the conversation offers."""
    return offer_tools(chosen(list_offered(conversation)))


async def offer_again(names: Iterable[str]) -> Tools:
    """Return these tools as a request offers them, as far as they are still there."""
    await ready()
    return offer_tools(chosen(names))


def count_tool_tokens(names: Iterable[str]) -> dict[str, int]:
    """Return the estimated tokens that each of these tools adds to a request.

    Tools that are gone have no count.
    """
    tools = chosen(names)
    sizes = (count_text(dump_wire([schema])) for schema in make_schemas(tools))
    return {each.name: size for each, size in zip(tools, sizes, strict=True)}


def label_of(name: str) -> str:
    """Return the label of a tool for users, or its name if it has none or is gone."""
    tool = known().get(name)
    return visible(tool.title if tool else name)


def missing(names: Iterable[str]) -> list[str]:
    """Names of a conversation that no tool has now: removed, or its server is away."""
    found = available()
    return [name for name in dict.fromkeys(names) if name not in found]


def defaults() -> list[str]:
    """Return the names of the tools of new conversations."""
    return list(dict.fromkeys(settings.DEFAULT_TOOLS))


def left_out() -> list[tuple[str, str, str]]:
    """Return server, name and reason of the tools of servers that can't be offered."""
    return [each for source in _list_sources() for each in source.left_out()]


def can_come(name: str) -> bool:
    """Return whether a source may still find a tool of this name."""
    return any(name.startswith(source.name_starts()) for source in _list_sources())


def problems() -> list[str]:
    """Return the errors in TOOLS, one sentence for each path."""
    return _load_own(tuple(settings.TOOLS))[1]


@lru_cache(maxsize=8)
def _load_own(paths: tuple[str, ...]) -> tuple[list[SiteTool], list[str]]:
    tools, wrong = [], []
    for path in paths:
        try:
            tools.append(SiteTool.from_object(import_string(path)))
        except (ImportError, TypeError, ValueError) as error:
            wrong.append(f"{path!r} can't be used: {error}")
            logger.error("TOOLS: %r can't be used (%s)", path, type(error).__name__)
    names = call_forms.name_tools(each.name for each in tools)
    return [each.with_name(names[each.name]) for each in tools], wrong
