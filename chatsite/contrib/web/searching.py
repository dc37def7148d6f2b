"""Search engines: SearXNG at an address, or a function of the site.

Any answer is read as a few results of plain text.
"""

import asyncio
import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from django.conf import settings
from django.utils.module_loading import import_string
from langchain_core.tools import ToolException
from yarl import URL

from chatsite.features.tools.context import run_in_own_thread
from chatsite.features.tools.results import UNSTORABLE

from .fetching import FetchError, ask_engine

ADDRESS = re.compile(r"https?://[^\s/\\<>\"]+[^\s<>\"]*", re.IGNORECASE)
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
MAX_ADDRESS, MAX_TITLE, MAX_TEXT = 2_000, 200, 400
# Of an answer, however long it is.
MAX_READ = 100


class FoundPage(NamedTuple):
    """A page found by a search. `date` is its day, or "" if unknown."""

    address: str
    title: str
    text: str
    date: str = ""

    @property
    def site(self) -> str:
        return (URL(self.address).host or "").removeprefix("www.")


def is_searxng(setting: str) -> bool:
    return setting.startswith(("http://", "https://"))


async def find_results(query: str, limit: int) -> list[FoundPage]:
    """Return at most `limit` results. Raises ToolException."""
    setting = settings.WEB_SEARCH
    found = await (_ask_searxng if is_searxng(setting) else _ask_function)(query, limit)
    by_address: dict[str, FoundPage] = {}
    for result in read_results(found):
        by_address.setdefault(result.address, result)
    return [*by_address.values()][:limit]


async def _ask_searxng(query: str, limit: int) -> Any:
    url = URL(settings.WEB_SEARCH.rstrip("/") + "/search")
    try:
        answer = await ask_engine(url.with_query(q=query, format="json"))
    except FetchError as error:
        raise ToolException(f"The search engine gives no answer: {error}") from None
    try:
        return (await run_in_own_thread(partial(json.loads, answer)))["results"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise ToolException("The search engine's answer can't be read.") from None


async def _ask_function(query: str, limit: int) -> Any:
    function = import_function(settings.WEB_SEARCH)
    seconds = settings.WEB_SECONDS
    try:
        async with asyncio.timeout(seconds):
            if inspect.iscoroutinefunction(function):
                return await function(query, limit)
            return await run_in_own_thread(partial(function, query, limit))
    except TimeoutError:
        raise ToolException(
            f"The search engine gives no answer within {seconds:g} s."
        ) from None


def import_function(path: str) -> Callable[[str, int], Any]:
    """Import a function by its path.

    Raises ImportError, or TypeError for anything but a function.
    """
    found = import_string(path)
    if isinstance(found, type) or not callable(found):
        raise TypeError(f"{path!r} is no function")
    return found


def read_results(found: Any) -> Iterator[FoundPage]:
    """Yield the results with a web address; nothing for any other value."""
    if not isinstance(found, Iterable) or isinstance(found, str | bytes | Mapping):
        return
    for each in islice(found, MAX_READ):
        if not isinstance(each, Mapping):
            continue
        address = _find_line(each, MAX_ADDRESS + 1, "url")
        if len(address) > MAX_ADDRESS or not _is_address(address):
            continue
        date = DATE.match(_find_line(each, 40, "publishedDate", "date"))
        title = _find_line(each, MAX_TITLE, "title")
        text = _find_line(each, MAX_TEXT, "content", "text")
        yield FoundPage(address, title or address, text, date[0] if date else "")


def _is_address(address: str) -> bool:
    try:
        return bool(ADDRESS.fullmatch(address) and URL(address).host)
    except ValueError:
        return False


def _find_line(values: Mapping[Any, Any], most: int, *names: str) -> str:
    """Return the first of these values that is a text, as one line."""
    for name in names:
        if isinstance(text := values.get(name), str) and text:
            # No more is looked at than can be shown.
            line = " ".join(UNSTORABLE.sub("\ufffd", text[: most * 4]).split())
            return line if len(line) <= most else f"{line[: most - 1]}…"
    return ""
