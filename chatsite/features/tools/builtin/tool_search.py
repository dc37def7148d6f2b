"""The tool `find_tools`, for conversations with more tools than a request should hold.

A request then has this tool, those that were called before and those that the last
searches found, in the order of the transcript. So a new one leaves the beginning as it
was, until an early search is no longer among the last.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar

from django.db.models import Max, Min
from django.db.models.fields.json import KT
from django.db.models.functions import Left
from django.utils.translation import gettext_lazy as _
from langchain_core.tools import tool

from memory.models import Conversation

from ..context import BUILT_IN, SiteTool

MOST_FOUND, MOST_LISTED = 8, 60
DESCRIPTION_CHARS, WORDS_CHARS = 200, 200
# A request offers the tools that were called, and those of the last searches.
MOST_SEARCHES = 50
WORD = re.compile(r"[^\W_]+")
# The words of a tool's name, and of its description.
ToolWords = tuple[set[str], set[str]]
# Of the conversation whose call runs.
callable_tools: ContextVar[Sequence[SiteTool]] = ContextVar("tools", default=())


@tool(parse_docstring=True)
async def find_tools(words: str) -> str:
    """Find tools by words of their names and descriptions. There are more tools than
    you see here: look for one before you say that you cannot do something.

    Args:
        words: A few words about what the tool does, such as "calendar create event".
    """  # noqa: D205 (models read it)
    tools = {each.name: each.tool for each in callable_tools.get()}
    words_of = _split_tools(callable_tools.get())
    if found := search_tools(words, words_of):
        lines = [f"{n}: {tools[n].description[:DESCRIPTION_CHARS]}" for n in found]
        return "\n".join(["You can call these tools from now on.", *lines])
    listed = ", ".join([*words_of][:MOST_LISTED])
    return f"No tool has one of these words. Some of the tools: {listed}."


FINDER = SiteTool(find_tools, _("Find tools"), read_only=True, source=BUILT_IN)


def limit_offer(
    conversation: Conversation, tools: Sequence[SiteTool]
) -> tuple[str, ...]:
    """Return the names that a request offers of these tools, with the search."""
    words_of = _split_tools(tools)
    # Of this turn, too. Each request reads them again, so the database leaves out
    # repeated calls, what other tools were given, and the ends of long searches.
    calls = conversation.tool_calls
    called = calls.filter(name__in=words_of).values_list("name")
    searches = (
        calls.filter(name=FINDER.name)
        .values(words=Left(KT("arguments__words"), WORDS_CHARS))
        .annotate(first=Min("pk"), last=Max("pk"))
        .order_by("-last")[:MOST_SEARCHES]
    )
    found = [(first, [name]) for name, first in called.annotate(first=Min("pk"))]
    for row in searches:
        found.append((row["first"], search_tools(row["words"] or "", words_of)))
    names = (name for _first, each in sorted(found) for name in each)
    return FINDER.name, *dict.fromkeys(names)


def search_tools(words: str, words_of: Mapping[str, ToolWords]) -> list[str]:
    """Return the tools that have the most of these words; the name counts double."""
    wanted = {*_split_words(words[:WORDS_CHARS])}
    scores = {
        name: 2 * len(wanted & in_name) + len(wanted & in_text)
        for name, (in_name, in_text) in words_of.items()
    }
    ranked = sorted(filter(scores.get, scores), key=lambda name: -scores[name])
    return ranked[:MOST_FOUND]


def _split_words(text: str) -> Iterable[str]:
    """Yield the words of a text, without their plural s, and Chinese signs in pairs."""
    for word in WORD.findall(text.lower()):
        if word.isascii():
            yield word.removesuffix("s")
        else:
            yield word
            yield from (word[at : at + 2] for at in range(len(word) - 1))


def _split_tools(tools: Iterable[SiteTool]) -> dict[str, ToolWords]:
    return {
        each.name: ({*_split_words(each.name)}, {*_split_words(each.tool.description)})
        for each in tools
        if each is not FINDER
    }
