"""The tool `find_tools`, for conversations with more tools than a request should hold.

A request then has this tool and those that it found or that were called before, in the
order of the transcript, so that a new one leaves the beginning as it was.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from operator import itemgetter

from django.db.models import Case, Min, Value, When
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
    texts = _describe_tools(callable_tools.get())
    if found := search_tools(words, texts):
        lines = [f"{n}: {tools[n].description[:DESCRIPTION_CHARS]}" for n in found]
        return "\n".join(["You can call these tools from now on.", *lines])
    listed = ", ".join([*texts][:MOST_LISTED])
    return f"No tool has one of these words. Some of the tools: {listed}."


FINDER = SiteTool(find_tools, _("Find tools"), read_only=True, source=BUILT_IN)


def limit_offer(
    conversation: Conversation, tools: Sequence[SiteTool]
) -> tuple[str, ...]:
    """Return the names that a request offers of these tools, with the search."""
    texts = _describe_tools(tools)
    # Of this turn, too. Each request reads them again, so the database leaves out
    # repeated calls, what other tools were given, and the ends of long searches.
    is_search = When(name=FINDER.name, then=Left(KT("arguments__words"), WORDS_CHARS))
    calls = conversation.tool_calls.filter(name__in=[FINDER.name, *texts])
    rows = (
        calls.values("name", words=Case(is_search, default=Value("")))
        .annotate(first=Min("pk"))
        # All tools that were called, then the last searches.
        .order_by(Case(When(name=FINDER.name, then=1), default=0), "-first")
    )[: len(texts) + MOST_SEARCHES]
    found: dict[str, None] = {}
    for row in sorted(rows, key=itemgetter("first")):
        is_tool = row["name"] != FINDER.name
        names = [row["name"]] if is_tool else search_tools(row["words"] or "", texts)
        found |= dict.fromkeys(names)
    return FINDER.name, *found


def search_tools(words: str, texts: Mapping[str, str]) -> list[str]:
    """Return the tools that have the most of these words; the name counts double.

    `texts` are descriptions by names.
    """
    wanted = {*_split_words(words[:WORDS_CHARS])}
    scores = {}
    for name, text in texts.items():
        in_name = wanted.intersection(_split_words(name))
        scores[name] = 2 * len(in_name) + len(wanted.intersection(_split_words(text)))
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


def _describe_tools(tools: Iterable[SiteTool]) -> dict[str, str]:
    found = (each for each in tools if each is not FINDER)
    return {each.name: each.tool.description for each in found}
